// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "runtime/tensor/dtype.h"

namespace lockstep::kernels::cpu {

/// Rounds numbers to float16 or bfloat16, as Elementwise::cast does: to nearest, ties to even. A number that is too
/// large becomes infinity; NaN stays NaN. Runs on the calling thread alone. `out` has as many elements, may not alias.
void narrow(std::span<const float> numbers, DType dtype, void* out);

}  // namespace lockstep::kernels::cpu
