// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

struct AttentionOptions {
  /// Broadcast to [..., Tq, Tk], its last extent being Tk. bool: which keys a query sees. Floating, of q's dtype: added
  /// to the scores. A mask that requires a gradient makes attention a composition, which stores Tq x Tk. May be
  /// undefined.
  Tensor mask = {};
  bool causal = false;                         ///< query i sees keys 0 to i; goes with a mask too
  std::optional<double> scale = std::nullopt;  ///< of q . k; 1 / sqrt(d) where it is not given
};

/// softmax(scale q k^T + mask) v, PyTorch's scaled_dot_product_attention without dropout.
///
/// q [..., Tq, d], k [..., Tk, d], v [..., Tk, dv] -> [..., Tq, dv]: any leading dimensions, of which the last are
/// heads: [N, heads, T, d], [N, T, d] of sequences with one head, [T, d]. Heads of k and v may be fewer by a whole
/// factor; then neighbouring heads of q share one. A query that sees no key gives 0.
///
/// Computed by blocks: memory grows with Tq and Tk, not with their product, forward and backward. With create_graph the
/// backward pass is made of operations and does store Tq x Tk. Under autocast q, k, v and a floating mask are cast to
/// its dtype; the softmax is float32 inside, and results are rounded once.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});

}  // namespace lockstep::ops
