// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/elementwise.h"

#include "runtime/kernels/cuda/families.h"

namespace lockstep::kernels::cuda {

// casts.cu, arithmetic.cu and broadcast.cu define them.
Function<decltype(Elementwise::fill)> fill;
Function<decltype(Elementwise::cast)> cast;
Function<decltype(Elementwise::copy_unless)> copy_unless;
Function<decltype(Elementwise::accumulate)> accumulate;
Function<decltype(Elementwise::scale)> scale;
Function<decltype(Elementwise::binary)> binary;
Function<decltype(Elementwise::binary_with_number)> binary_with_number;
Function<decltype(Elementwise::ternary)> ternary;
Function<decltype(Elementwise::expand)> expand;

const Elementwise kElementwise{.fill = fill,
                               .cast = cast,
                               .copy_unless = copy_unless,
                               .accumulate = accumulate,
                               .scale = scale,
                               .binary = binary,
                               .binary_with_number = binary_with_number,
                               .ternary = ternary,
                               .expand = expand};

}  // namespace lockstep::kernels::cuda
