// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/attention.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/base/error.h"
#include "runtime/ops/attention_composition.h"
#include "runtime/ops/linear.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/operation_options.h"
#include "runtime/ops/result.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;

namespace {

std::int64_t leading(const Shape& shape, int dims) {
  std::int64_t product = 1;
  for (int d = 0; d < dims; ++d) product *= shape[d];
  return product;
}

AttentionExtents extents_of(const Tensor& q, const Tensor& k, const Tensor& v) {
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

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                    const AttentionOptions& options) {
  constexpr amp::Op kOp = amp::Op::kScaledDotProductAttention;
  const Tensor q = amp::autocast(kOp, queries, "q"), k = amp::autocast(kOp, keys, "k");
  const Tensor v = amp::autocast(kOp, values, "v");
  const AttentionExtents extents = extents_of(q, k, v);
  const AttentionComposition composition(extents, options, q.shape().rank() >= 3 ? q.size(0) : 1);
  const Tensor given = amp::autocast_if_defined(kOp, options.mask);
  const Tensor mask = given.defined() ? reshape(given, mask_shape(given, q.shape(), extents)) : given;

  const Tensor norms = Tensor::empty(extents.norms(), wide_of(q.dtype()), q.device());
  const Tensor y = Tensor::empty(q.shape().with(-1, extents.value_channels), q.dtype(), q.device());
  kernels::Attention::on(q.device())
      .attention(q.detach(extents.q()), k.detach(extents.k()), v.detach(extents.v()), composition.scores(mask),
                 y.detach(extents.out()), norms);
  if (mask.defined() && autograd::is_recorded(mask)) {
    const amp::Autocast off(false);
    const Tensor p = composition.probabilities(widened(q), widened(k), widened(mask), norms);
    return autograd::cast(
        reshape(matmul(composition.dropped(p), false, composition.as_columns(widened(v)), false), y.shape()),
        q.dtype());
  }

  const auto saved_q = SavedTensor::in_graph(q), saved_k = SavedTensor::in_graph(k), saved_v = SavedTensor::in_graph(v);
  const SavedTensor saved_mask(mask), result(y);
  autograd::record(
      y, name_of(kOp), {q, k, v},
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
             kernels::Attention::on(dout.device())
                 .attention_backward(
                     context.saved(saved_q).detach(extents.q()), context.saved(saved_k).detach(extents.k()),
                     context.saved(saved_v).detach(extents.v()), composition.scores(context.saved(saved_mask)),
                     context.saved(result).detach(extents.out()), norms, dout.detach(extents.out()), dq, dk, dv);
             return grads;
           },
       .recorded =
           [=](const Tensor& dout, const BackwardContext& context) {
             std::vector<Tensor> grads = composition.gradients(
                 widened(context.saved(saved_q)), widened(context.saved(saved_k)), widened(context.saved(saved_v)),
                 widened(context.saved(saved_mask)), norms, widened(dout));
             grads[0] = reshape(grads[0], saved_q.peek().shape());
             grads[1] = reshape(grads[1], saved_k.peek().shape());
             grads[2] = reshape(grads[2], saved_v.peek().shape());
             return grads;
           }});
  autograd::note_options(y, ScoreOptions{.scale = composition.scale, .causal = composition.causal}, mask);
  return y;
}

}  // namespace lockstep::ops
