// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/base/host_device.h"
#include "runtime/kernels/attention_dropout.h"
#include "runtime/kernels/heads.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// The scale and the mask that make a score of q . k, the keys that a query sees, and the dropout of probabilities.
struct AttentionScores {
  double scale = 1.0;   ///< of q . k
  bool causal = false;  ///< query i sees keys 0 to i only
  /// [batch or 1, heads or 1, Tq or 1, Tk], broadcast where an extent is 1; may be undefined. bool: which keys take
  /// part. Of q's dtype: added to the scaled products, -inf taking a key out.
  Tensor mask = {};
  AttentionDropout dropout = {};
};

/// Where an element of a mask lies: steps of 0 broadcast.
struct MaskSteps {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t query = 0;

  MaskSteps() = default;
  explicit MaskSteps(const Tensor& mask)
      : batch(mask.size(0) == 1 ? 0 : mask.size(1) * mask.size(2) * mask.size(3)),
        head(mask.size(1) == 1 ? 0 : mask.size(2) * mask.size(3)),
        query(mask.size(2) == 1 ? 0 : mask.size(3)) {}
  /// The offset of the mask's first element for head h of sample b.
  LOCKSTEP_HOST_DEVICE std::int64_t offset(std::int64_t b, std::int64_t h) const { return b * batch + h * head; }
};

/// Softmax attention, by blocks of queries and keys with a running maximum and sum (Dao et al.: "FlashAttention",
/// NeurIPS 2022), or by blocks of queries: memory grows with Tq and Tk, not with Tq x Tk; the backward pass of cuDNN
/// adds 1 GiB at most. Sums are float32 for 16-bit inputs, whose results are rounded once. Where hardware multiplies
/// the 16-bit dtype, a GPU's tensor cores or a CPU's instructions, probabilities and slopes of scores are rounded too.
///
/// Shapes: q [batch, heads, Tq, d]; k [batch, kv_heads, Tk, d]; v [batch, kv_heads, Tk, dv], kv_heads a divisor of
/// heads: query head h reads head h / (heads / kv_heads) of k and v. out [batch, heads, Tq, dv]. One floating dtype.
/// Each is a tensor of this shape or lies in sequences, as Heads has it; results are the same.
struct Attention {
  /// This family's functions of the backend for tensors on `device`.
  static const Attention& on(Device device);

  /// out_i = sum_j p_ij v_j, p_i = softmax_j(scale q_i . k_j + mask_ij), after dropout. A query that sees no key gives
  /// 0, as PyTorch's. norms [batch, heads, Tq, 2], float32 (float64 for float64), is kept for the backward pass: of a
  /// query's scores s the largest, m, and log sum_j e^(s_j - m). Their sum would lose the second where a mask makes m
  /// large; without one m may be log sum_j e^(s_j), beside 0. On a GPU m may lie up to 8 below the largest. Of a query
  /// that sees no key: 0 and +inf.
  void (*attention)(const Heads& q, const Heads& k, const Heads& v, const AttentionScores& scores, const Heads& out,
                    const Tensor& norms);
  /// The gradients have the shapes of q, k and v; each may be undefined, which leaves it out. The mask has none. Scores
  /// are computed again from q, k and norms. Sums over queries and over the heads that share a key run in a fixed
  /// order.
  void (*attention_backward)(const Heads& q, const Heads& k, const Heads& v, const AttentionScores& scores,
                             const Heads& out, const Tensor& norms, const Heads& dout, const Heads& dq, const Heads& dk,
                             const Heads& dv);
};

}  // namespace lockstep::kernels
