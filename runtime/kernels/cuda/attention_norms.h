// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels::cuda {

// Between the norms [..., 2] of kernels::Attention and stats [...], the sums of each two, which are all that cuDNN
// knows. A probability e^(s - stats) is off by the part |stats| 2^-24, the rounding of stats: by less than that of
// float16 up to scores of 2^13, and of bfloat16 of 2^16. float32, on the calling thread's current stream of the device.

/// m becomes the whole sum, and the other number 0.
void norms_of_stats(const Tensor& stats, const Tensor& norms);
/// Of as many queries as stats has, from number `first_query` on.
void stats_of_norms(const Tensor& norms, std::int64_t first_query, const Tensor& stats);

}  // namespace lockstep::kernels::cuda
