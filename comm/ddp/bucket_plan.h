// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/ddp/ddp_options.h"
#include "runtime/nn/arena.h"

namespace lockstep::comm {

/// A slice of the gradient arena that is reduced in one piece.
struct Bucket {
  std::int64_t begin = 0;  ///< elements
  std::int64_t end = 0;
  int first_slot = 0;
  int last_slot = 0;  ///< one past the last

  bool operator==(const Bucket&) const = default;
};

/// Cuts the arena into buckets at parameter boundaries, in its order: the first one small, so that communication starts
/// early, the others of about bucket_mb MiB on the wire; or behind each of the parameters that the options name. Throws
/// FieldError for a name that no parameter has.
std::vector<Bucket> plan_buckets(const nn::Arena& arena, const DdpOptions& options);

/// How gradients are reduced, as a checkpoint keeps it.
struct BucketPlan {
  std::vector<Bucket> buckets;
  std::vector<std::string> parameters;  ///< names in the arena's order
  DType wire_dtype = DType::kFloat32;
};
BucketPlan describe_plan(const std::vector<Bucket>& buckets, const nn::Arena& arena);

}  // namespace lockstep::comm
