// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "configs/checkpoint.pb.h"
#include "configs/job.pb.h"
#include "runtime/nn/arena.h"

namespace lockstep::comm {

/// A slice of the gradient arena that is reduced in one piece.
struct Bucket {
  std::int64_t begin = 0;  ///< elements
  std::int64_t end = 0;
  int first_slot = 0;
  int last_slot = 0;  ///< one past the last
};

/// Cuts the arena into buckets at parameter boundaries, in its order: the first one small, so that communication starts
/// early, the others of about bucket_mb MiB on the wire.
std::vector<Bucket> plan_buckets(const nn::Arena& arena, const job::Comm& config);

/// The plan as a checkpoint keeps it.
checkpoint::BucketPlan describe_plan(const std::vector<Bucket>& buckets, const nn::Arena& arena);

}  // namespace lockstep::comm
