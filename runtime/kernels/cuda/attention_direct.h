// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/attention.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

// Attention by our own kernels, for whatever neither cuDNN nor attention_tiles.h computes: float32, few queries or
// keys, heads of up to 256 channels. The arguments, checked, and what holds of them: kernels::Attention. On the calling
// thread's current stream of the device. Throws ShapeError for a dtype or a width that a GPU does not take.

void attention_direct(const checks::AttentionExtents& extents, const Heads& q, const Heads& k, const Heads& v,
                      const AttentionScores& scores, const Heads& out, const Tensor& norms);
void attention_backward_direct(const checks::AttentionExtents& extents, const Heads& q, const Heads& k, const Heads& v,
                               const AttentionScores& scores, const Heads& out, const Tensor& norms, const Heads& dout,
                               const Heads& dq, const Heads& dk, const Heads& dv);

}  // namespace lockstep::kernels::cuda
