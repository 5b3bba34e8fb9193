// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/ops/types.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

struct AttentionOptions {
  /// Broadcast to [..., Tq, Tk], its last extent being Tk. bool: which keys a query sees. Floating, of q's dtype: added
  /// to the scores. A mask that requires a gradient makes attention a composition, which stores Tq x Tk. May be
  /// undefined.
  Tensor mask = {};
  bool causal = false;                         ///< query i sees keys 0 to i; goes with a mask too
  std::optional<double> scale = std::nullopt;  ///< of q . k; 1 / sqrt(d) where it is not given
  /// The probability with which an element of the softmax is zeroed; the others are multiplied by 1 / (1 - dropout).
  double dropout = 0;
  /// The key that names the dropout mask, together with first_sample, the place of q's first row [N, ...] in the global
  /// batch. The mask is the same for every number of ranks, for every device, and in every backward pass (dropout.h).
  /// It is never stored.
  DropoutKey dropout_key = {};
  std::int64_t first_sample = 0;
};

/// dropout(softmax(scale q k^T + mask)) v, PyTorch's scaled_dot_product_attention.
///
/// q [..., Tq, d], k [..., Tk, d], v [..., Tk, dv] -> [..., Tq, dv]: any leading dimensions, of which the last are
/// heads: [N, heads, T, d], [N, T, d] of sequences with one head, [T, d]. Heads of k and v may be fewer by a whole
/// factor; then neighbouring heads of q share one. A query that sees no key gives 0.
///
/// Computed by blocks: memory grows with Tq and Tk, not with their product, forward and backward. With create_graph the
/// backward pass is made of operations and does store Tq x Tk. Under autocast q, k, v and a floating mask are cast to
/// its dtype; the softmax is float32 inside, and results are rounded once.
[[nodiscard]] Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                                  const AttentionOptions& options = {});

/// Attention that reads queries, keys and values from the sequences which one projection makes, and writes a sequence.
/// It copies no heads.
///
/// x [N, T, (heads + 2 kv_heads) channels], queries, keys and values in this order -> [N, T, heads channels]. kv_heads
/// divides heads. Equal to join_heads() of scaled_dot_product_attention() of split_heads(), to the same bits, also its
/// gradient; a mask that requires a gradient has it computed so.
[[nodiscard]] Tensor packed_attention(const Tensor& x, std::int64_t heads, std::int64_t kv_heads,
                                      const AttentionOptions& options = {});

}  // namespace lockstep::ops
