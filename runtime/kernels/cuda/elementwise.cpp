// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/families.h"

namespace lockstep::kernels::cuda {

// casts.cu and arithmetic.cu define them.
Function<decltype(Elementwise::fill)> fill;
Function<decltype(Elementwise::cast)> cast;
Function<decltype(Elementwise::copy_unless)> copy_unless;
Function<decltype(Elementwise::accumulate)> accumulate;
Function<decltype(Elementwise::add)> add;
Function<decltype(Elementwise::multiply)> multiply;
Function<decltype(Elementwise::scale)> scale;

const Elementwise kElementwise{.fill = fill,
                               .cast = cast,
                               .copy_unless = copy_unless,
                               .accumulate = accumulate,
                               .add = add,
                               .multiply = multiply,
                               .scale = scale};

}  // namespace lockstep::kernels::cuda
