// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/normalization.h"

#include "runtime/kernels/cuda/families.h"

namespace lockstep::kernels::cuda {

// layer_norm.cu and group_norm.cu define them.
Function<decltype(Normalization::layer_norm)> layer_norm;
Function<decltype(Normalization::layer_norm_backward)> layer_norm_backward;
Function<decltype(Normalization::group_norm)> group_norm;
Function<decltype(Normalization::group_norm_backward)> group_norm_backward;

const Normalization kNormalization{.layer_norm = layer_norm,
                                   .layer_norm_backward = layer_norm_backward,
                                   .group_norm = group_norm,
                                   .group_norm_backward = group_norm_backward};

}  // namespace lockstep::kernels::cuda
