// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/attention.h"

#include <cmath>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/base/error.h"
#include "runtime/kernels/attention.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/dropout.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/factories.h"
#include "runtime/ops/linear.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/operation_options.h"
#include "runtime/ops/result.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;

namespace {

/// The sizes of one call, and the shapes in which the kernel and the composition see its tensors.
struct Extents {
  std::int64_t batch, heads, kv_heads, queries, keys, channels, value_channels;

  Shape q() const { return {batch, heads, queries, channels}; }
  Shape k() const { return {batch, kv_heads, keys, channels}; }
  Shape v() const { return {batch, kv_heads, keys, value_channels}; }
  Shape out() const { return {batch, heads, queries, value_channels}; }
  Shape scores() const { return {batch, heads, queries, keys}; }
  Shape norms() const { return {batch, heads, queries, 2}; }
  /// Batches of matrices: the heads of q that share a head of k lie one behind the other.
  Shape rows(std::int64_t columns) const {
    return {batch * kv_heads, kv_heads > 0 ? heads / kv_heads * queries : 0, columns};
  }
  Shape columns(std::int64_t of_row) const { return {batch * kv_heads, keys, of_row}; }
};

std::int64_t leading(const Shape& shape, int dims) {
  std::int64_t product = 1;
  for (int d = 0; d < dims; ++d) product *= shape[d];
  return product;
}

Extents extents_of(const Tensor& q, const Tensor& k, const Tensor& v) {
  const int rank = q.shape().rank();
  bool fit = rank >= 2 && k.shape().rank() == rank && v.shape().rank() == rank;
  for (int d = 0; fit && d < rank - 3; ++d) fit = k.size(d) == q.size(d) && v.size(d) == q.size(d);
  if (fit && rank >= 3) fit = v.size(-3) == k.size(-3);
  fit = fit && k.size(-1) == q.size(-1) && v.size(-2) == k.size(-2);
  if (!fit) {
    throw ShapeError("scaled_dot_product_attention of q " + describe(q) + ", k " + describe(k) + " and v " +
                     describe(v) + ": q [..., heads, Tq, d], k [..., kv_heads, Tk, d], v [..., kv_heads, Tk, dv]");
  }
  const bool has_heads = rank >= 3;
  return {.batch = leading(q.shape(), rank - 3),
          .heads = has_heads ? q.size(-3) : 1,
          .kv_heads = has_heads ? k.size(-3) : 1,
          .queries = q.size(-2),
          .keys = k.size(-2),
          .channels = q.size(-1),
          .value_channels = v.size(-1)};
}

/// The mask's shape as [batch or 1, heads or 1, Tq or 1, Tk].
Shape mask_shape(const Tensor& mask, const Tensor& q, const Extents& extents) {
  const int rank = q.shape().rank();
  const int missing = rank - mask.shape().rank();
  const auto extent = [&](int d) { return d < missing || d < 0 ? 1 : mask.size(d - missing); };
  bool all = true, none = true;
  for (int d = 0; d < rank - 3; ++d) {
    all = all && extent(d) == q.size(d);
    none = none && extent(d) == 1;
  }
  if (missing < 0 || mask.shape().rank() < 1 || !(all || none)) {
    throw ShapeError("scaled_dot_product_attention: a mask " + mask.shape().str() + " does not broadcast to " +
                     extents.scores().str());
  }
  return {none ? 1 : extents.batch, extent(rank - 3), extent(rank - 2), extent(rank - 1)};
}

/// Attention made of operations, in float32 or float64: autocast is off for them.
struct Composition {
  Extents extents;
  double scale;
  bool causal;
  kernels::AttentionDropout dropout;

  /// p = e^(s - m) / sum e^(s - m), [batch * kv_heads, rows, keys]. m is near the largest s, or the
  /// logarithm of the sum; it is a constant, since p does not depend on it.
  Tensor probabilities(const Tensor& q, const Tensor& k, const Tensor& mask, const Tensor& norms) const {
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

  /// Applies the dropout of the probabilities to x [batch * kv_heads, rows, keys].
  Tensor dropped(const Tensor& x) const {
    if (dropout.p == 0 || x.numel() == 0) return x;
    // Rows of one sample each, as the place of a captured step counts them.
    const Tensor samples = reshape(x, {x.numel() / dropout.elements_of_sample, dropout.elements_of_sample});
    const std::int64_t first_sample = dropout.first_element / dropout.elements_of_sample;
    return reshape(ops::dropout(samples, dropout.p, dropout.key, first_sample), x.shape());
  }

  std::vector<Tensor> gradients(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                                const Tensor& norms, const Tensor& dout) const {
    const amp::Autocast off(false);
    const Tensor p = probabilities(q, k, mask, norms);
    const Tensor slope = reshape(dout, extents.rows(extents.value_channels));
    const Tensor of_p = dropped(matmul(slope, false, as_columns(v), true));
    const Tensor mean = sum_to(mul(p, of_p), extents.rows(1));
    const Tensor of_products = ops::scale(mul(p, sub(of_p, mean)), scale);
    return {matmul(of_products, false, as_columns(k), false), matmul(of_products, true, as_rows(q), false),
            matmul(dropped(p), true, slope, false)};
  }

  Tensor as_rows(const Tensor& x) const { return reshape(x, extents.rows(x.shape().back())); }
  Tensor as_columns(const Tensor& x) const { return reshape(x, extents.columns(x.shape().back())); }
};

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                    const AttentionOptions& options) {
  constexpr amp::Op kOp = amp::Op::kScaledDotProductAttention;
  const Tensor q = amp::autocast(kOp, queries, "q"), k = amp::autocast(kOp, keys, "k");
  const Tensor v = amp::autocast(kOp, values, "v");
  const Extents extents = extents_of(q, k, v);
  const double scale =
      options.scale.value_or(1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(extents.channels, 1))));
  const Tensor given = amp::autocast_if_defined(kOp, options.mask);
  const Tensor mask = given.defined() ? reshape(given, mask_shape(given, q, extents)) : given;

  const Tensor norms = Tensor::empty(extents.norms(), wide_of(q.dtype()), q.device());
  const Tensor y = Tensor::empty(q.shape().with(-1, extents.value_channels), q.dtype(), q.device());
  const std::int64_t samples = q.shape().rank() >= 3 ? std::max<std::int64_t>(q.size(0), 1) : 1;
  const std::int64_t of_sample = extents.scores().numel() / samples;
  const kernels::AttentionDropout dropout{.p = options.dropout,
                                          .key = options.dropout_key,
                                          .first_element = options.first_sample * of_sample,
                                          .elements_of_sample = of_sample};
  const kernels::AttentionScores scores{.scale = scale, .causal = options.causal, .mask = mask, .dropout = dropout};
  kernels::Attention::on(q.device())
      .attention(q.detach(extents.q()), k.detach(extents.k()), v.detach(extents.v()), scores, y.detach(extents.out()),
                 norms);
  const Composition composition{extents, scale, options.causal, dropout};
  if (mask.defined() && autograd::is_recorded(mask)) {
    const amp::Autocast off(false);
    const Tensor p = composition.probabilities(widened(q), widened(k), widened(mask), norms);
    return autograd::cast(
        reshape(matmul(composition.dropped(p), false, composition.as_columns(widened(v)), false), y.shape()),
        q.dtype());
  }

  const auto saved_q = SavedTensor::in_graph(q), saved_k = SavedTensor::in_graph(k), saved_v = SavedTensor::in_graph(v);
  const SavedTensor saved_mask(mask), result(y);
  autograd::record(y, name_of(kOp), {q, k, v},
                   {.fused =
                        [=](const Tensor& dout, const BackwardContext& context) {
                          std::vector<Tensor> grads(3);
                          const auto target = [&](std::size_t i, const SavedTensor& input, const Shape& shape) {
                            if (!context.needs(i)) return Tensor();
                            grads[i] = empty_like(input.peek());
                            return grads[i].detach(shape);
                          };
                          const Tensor dq = target(0, saved_q, extents.q()), dk = target(1, saved_k, extents.k()),
                                       dv = target(2, saved_v, extents.v());
                          const kernels::AttentionScores again{.scale = scale,
                                                               .causal = composition.causal,
                                                               .mask = context.saved(saved_mask),
                                                               .dropout = composition.dropout};
                          kernels::Attention::on(dout.device())
                              .attention_backward(context.saved(saved_q).detach(extents.q()),
                                                  context.saved(saved_k).detach(extents.k()),
                                                  context.saved(saved_v).detach(extents.v()), again,
                                                  context.saved(result).detach(extents.out()), norms,
                                                  dout.detach(extents.out()), dq, dk, dv);
                          return grads;
                        },
                    .recorded =
                        [=](const Tensor& dout, const BackwardContext& context) {
                          std::vector<Tensor> grads =
                              composition.gradients(widened(context.saved(saved_q)), widened(context.saved(saved_k)),
                                                    widened(context.saved(saved_v)), widened(context.saved(saved_mask)),
                                                    norms, widened(dout));
                          grads[0] = reshape(grads[0], saved_q.peek().shape());
                          grads[1] = reshape(grads[1], saved_k.peek().shape());
                          grads[2] = reshape(grads[2], saved_v.peek().shape());
                          return grads;
                        }});
  autograd::note_options(y, ScoreOptions{scale, options.causal}, mask);
  return y;
}

}  // namespace lockstep::ops
