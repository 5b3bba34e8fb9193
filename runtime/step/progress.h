// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/data/sampler.h"

namespace lockstep::step {

/// How far a run has come.
struct Progress {
  std::uint64_t step = 0;           ///< the last one that is done, skipped ones counted
  data::SamplerState sampler = {};  ///< where the next one begins, and in which order: data::Loader::state()
};

}  // namespace lockstep::step
