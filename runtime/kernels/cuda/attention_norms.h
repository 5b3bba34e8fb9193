// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/heads.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels::cuda {

// Numbers of each query that the backward pass of attention reads, in float32. The functions append to the calling
// thread's current stream of the device.
//
// Conversions between the norms [..., 2] of kernels::Attention and stats [...], the sum of each pair, which is all that
// cuDNN knows. The rounding of stats gives a probability e^(s - stats) a relative error of |stats| 2^-24: less than the
// rounding of float16 for scores up to 2^13, and of bfloat16 up to 2^16.

/// Writes norms in which m is the whole sum and the other number 0.
void norms_of_stats(const Tensor& stats, const Tensor& norms);
/// Writes the stats of as many queries as stats has, from number `first_query` on.
void stats_of_norms(const Tensor& norms, std::int64_t first_query, const Tensor& stats);

/// sum_c out_ic dout_ic [batch, heads, Tq] of out and dout [batch, heads, Tq, dv], of one floating dtype.
Tensor attention_deltas(const Heads& out, const Heads& dout);

}  // namespace lockstep::kernels::cuda
