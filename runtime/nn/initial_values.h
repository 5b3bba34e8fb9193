// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/base/counter_rng.h"
#include "runtime/nn/parameter.h"

namespace lockstep::nn {

/// Overwrites the tensor, of any floating dtype and device, with what `initializer` says. An element's value depends on
/// the stream and the element's index alone.
void fill(const Tensor& tensor, const Initializer& initializer, const CounterRng& stream);

/// Names random numbers of this process: the seed of the last manual_seed(), 0 without one, and a number that is given
/// once for each. Threads may ask at the same time; then the number depends on which is first.
struct MadeName {
  std::uint64_t seed = 0;
  std::uint32_t number = 0;
};
MadeName next_made_name();

/// Overwrites the tensor with values from the next stream of this process.
void fill(const Tensor& tensor, const Initializer& initializer);

}  // namespace lockstep::nn
