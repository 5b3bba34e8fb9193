// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/attention_heads.h"

// Attention in a 16-bit dtype that the processor multiplies, by products of matrices: some queries of a head against
// all keys that they see. Probabilities and slopes of scores are rounded before they are multiplied. Memory grows with
// the number of keys, not with that of queries.

namespace lockstep::kernels::cpu {

/// Whether these passes are the faster ones: bfloat16 where oneDNN multiplies it, and so many queries, keys and
/// channels that a product outweighs the call of it.
bool attention_by_products(DType dtype, const checks::AttentionExtents& extents);

void attention_forward_by_products(const AttentionHeads& heads, const Heads& out, const Tensor& norms);
void attention_backward_by_products(const AttentionHeads& heads, const Heads& out, const Tensor& norms,
                                    const Heads& dout, const Heads& dq, const Heads& dk, const Heads& dv);

}  // namespace lockstep::kernels::cpu
