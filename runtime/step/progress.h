// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/data/sampler.h"

namespace lockstep::step {

/// How far a run has come.
struct Progress {
  std::uint64_t step = 0;                   ///< the last one that is done, skipped ones counted
  data::SamplerState sampler = {};          ///< where the next one begins, and in which order: data::Loader::state()
  std::uint64_t skipped_samples = 0;        ///< that could not be read, over all ranks, in the run so far
  std::uint64_t epoch_skipped_samples = 0;  ///< of these, in the epoch of the next step
};

}  // namespace lockstep::step
