// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/attention.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

// Attention by our own kernels on tensor cores, for what cuDNN does not compute in 16 bits: masks, dropout, other
// lengths and widths. The arguments, checked, and what holds of them: kernels::Attention. Probabilities and slopes of
// scores are rounded before they are multiplied, as by cuDNN. On the calling thread's current stream of the device.

/// Whether these kernels compute it: float16, or bfloat16 where they were compiled for compute capability 8.0 or later,
/// heads of up to 128 channels, at least 32 queries and keys.
bool attention_has_tiles(const checks::AttentionExtents& extents, DType dtype, Device device);

void attention_by_tiles(const checks::AttentionExtents& extents, const Heads& q, const Heads& k, const Heads& v,
                        const AttentionScores& scores, const Heads& out, const Tensor& norms);
void attention_backward_by_tiles(const checks::AttentionExtents& extents, const Heads& q, const Heads& k,
                                 const Heads& v, const AttentionScores& scores, const Heads& out, const Tensor& norms,
                                 const Heads& dout, const Heads& dq, const Heads& dk, const Heads& dv);

}  // namespace lockstep::kernels::cuda
