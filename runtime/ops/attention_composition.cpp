// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/attention_composition.h"

#include <algorithm>
#include <cmath>

#include "amp/autocast/autocast.h"
#include "runtime/base/error.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/dropout.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/factories.h"
#include "runtime/ops/linear.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

Shape mask_shape(const Tensor& mask, const Shape& q, const AttentionExtents& extents) {
  const int rank = q.rank();
  const int missing = rank - mask.shape().rank();
  const auto extent = [&](int d) { return d < missing || d < 0 ? 1 : mask.size(d - missing); };
  bool all = true, none = true;
  for (int d = 0; d < rank - 3; ++d) {
    all = all && extent(d) == q[d];
    none = none && extent(d) == 1;
  }
  if (missing < 0 || mask.shape().rank() < 1 || !(all || none)) {
    throw ShapeError("attention: a mask " + mask.shape().str() + " does not broadcast to " + extents.scores().str());
  }
  return {none ? 1 : extents.batch, extent(rank - 3), extent(rank - 2), extent(rank - 1)};
}

AttentionComposition::AttentionComposition(const AttentionExtents& sizes, const AttentionOptions& options,
                                           std::int64_t samples)
    : extents(sizes),
      scale(options.scale.value_or(1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(sizes.channels, 1))))),
      causal(options.causal) {
  const std::int64_t of_sample = sizes.scores().numel() / std::max<std::int64_t>(samples, 1);
  dropout = {.p = options.dropout,
             .key = options.dropout_key,
             .first_element = options.first_sample * of_sample,
             .elements_of_sample = of_sample};
}

Tensor AttentionComposition::probabilities(const Tensor& q, const Tensor& k, const Tensor& mask,
                                           const Tensor& norms) const {
  const Tensor products = matmul(as_rows(q), false, as_columns(k), true);
  Tensor scores = ops::scale(reshape(products, extents.scores()), scale);
  if (mask.defined()) {
    scores = mask.dtype() == DType::kBool ? where(mask, scores, -INFINITY) : add(scores, mask);
  }
  if (causal) {
    const Placement placement{scores.dtype(), scores.device()};
    const Tensor keys = arange(extents.keys, placement).detach({1, 1, 1, extents.keys});
    const Tensor queries = arange(extents.queries, placement).detach({1, 1, extents.queries, 1});
    scores = where(le(keys, queries), scores, -INFINITY);
  }
  const Shape one_a_query{extents.batch, extents.heads, extents.queries, 1};
  const Tensor exponentials = exp(sub(scores, slice(norms, -1, 0, 1)));
  const Tensor sums = sum_to(exponentials, one_a_query);
  // A query that sees no key has no probabilities.
  return reshape(div(exponentials, where(eq(sums, 0), 1.0, sums)), extents.rows(extents.keys));
}

Tensor AttentionComposition::dropped(const Tensor& x) const {
  if (dropout.p == 0 || x.numel() == 0) return x;
  // Rows of one sample each, as the place of a captured step counts them.
  const Tensor samples = reshape(x, {x.numel() / dropout.elements_of_sample, dropout.elements_of_sample});
  const std::int64_t first_sample = dropout.first_element / dropout.elements_of_sample;
  return reshape(ops::dropout(samples, dropout.p, dropout.key, first_sample), x.shape());
}

std::vector<Tensor> AttentionComposition::gradients(const Tensor& q, const Tensor& k, const Tensor& v,
                                                    const Tensor& mask, const Tensor& norms, const Tensor& dout) const {
  const amp::Autocast off(false);
  const Tensor p = probabilities(q, k, mask, norms);
  const Tensor slope = reshape(dout, extents.rows(extents.value_channels));
  const Tensor of_p = dropped(matmul(slope, false, as_columns(v), true));
  const Tensor mean = sum_to(mul(p, of_p), extents.rows(1));
  const Tensor of_products = ops::scale(mul(p, sub(of_p, mean)), scale);
  return {matmul(of_products, false, as_columns(k), false), matmul(of_products, true, as_rows(q), false),
          matmul(dropped(p), true, slope, false)};
}

Tensor AttentionComposition::as_rows(const Tensor& x) const { return reshape(x, extents.rows(x.shape().back())); }
Tensor AttentionComposition::as_columns(const Tensor& x) const { return reshape(x, extents.columns(x.shape().back())); }

}  // namespace lockstep::ops
