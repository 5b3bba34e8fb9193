// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/kernels/random_keys.h"

namespace lockstep::kernels {

/// Dropout of the probabilities. Element (b, h, i, j) of [batch, heads, Tq, Tk] is number first_element + its index in
/// row-major order of the key's numbers, as Pointwise::dropout has it.
struct AttentionDropout {
  double p = 0;  ///< in [0, 1]; 0: none
  DropoutKey key = {};
  std::int64_t first_element = 0;
  std::int64_t elements_of_sample = 0;  ///< by which first_element moves for each sample of key.position
};

}  // namespace lockstep::kernels
