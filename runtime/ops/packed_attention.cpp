// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/base/error.h"
#include "runtime/ops/attention_composition.h"
#include "runtime/ops/heads.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/operation_options.h"
#include "runtime/ops/result.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;

namespace {

/// The heads of queries, keys and values along the channels of a sequence, in this order.
struct Packing {
  std::int64_t heads, kv_heads, channels;

  kernels::Heads q(const Tensor& x) const { return {x, 0, heads, channels}; }
  kernels::Heads k(const Tensor& x) const { return {x, heads * channels, kv_heads, channels}; }
  kernels::Heads v(const Tensor& x) const { return {x, (heads + kv_heads) * channels, kv_heads, channels}; }
  kernels::Heads out(const Tensor& y) const { return {y, 0, heads, channels}; }
  std::vector<std::int64_t> counts() const { return {heads, kv_heads, kv_heads}; }
};

Packing packing_of(const Tensor& x, std::int64_t heads, std::int64_t kv_heads) {
  const std::int64_t all = heads + 2 * kv_heads;
  if (x.shape().rank() != 3 || heads < 1 || kv_heads < 1 || heads % kv_heads != 0 || x.size(2) < 1 ||
      x.size(2) % all != 0) {
    throw ShapeError(
        fmt::format("packed_attention of {}: expected [N, T, ({} heads of queries + 2 * {} of keys and values, a "
                    "divisor of them) * channels]",
                    describe(x), heads, kv_heads));
  }
  return {heads, kv_heads, x.size(2) / all};
}

}  // namespace

Tensor packed_attention(const Tensor& input, std::int64_t heads, std::int64_t kv_heads,
                        const AttentionOptions& options) {
  constexpr amp::Op kOp = amp::Op::kPackedAttention;
  const Tensor x = amp::autocast(kOp, input);
  const Packing packing = packing_of(x, heads, kv_heads);
  if (options.mask.defined() && autograd::is_recorded(options.mask)) {
    const std::vector<Tensor> parts = split_heads(x, packing.counts(), packing.channels);
    return join_heads({scaled_dot_product_attention(parts[0], parts[1], parts[2], options)});
  }
  const AttentionExtents extents{.batch = x.size(0),
                                 .heads = heads,
                                 .kv_heads = kv_heads,
                                 .queries = x.size(1),
                                 .keys = x.size(1),
                                 .channels = packing.channels,
                                 .value_channels = packing.channels};
  const AttentionComposition composition(extents, options, x.size(0));
  const Tensor given = amp::autocast_if_defined(kOp, options.mask);
  const Tensor mask = given.defined() ? reshape(given, mask_shape(given, extents.q(), extents)) : given;

  const Tensor norms = Tensor::empty(extents.norms(), wide_of(x.dtype()), x.device());
  const Tensor y = Tensor::empty({x.size(0), x.size(1), heads * packing.channels}, x.dtype(), x.device());
  kernels::Attention::on(x.device())
      .attention(packing.q(x), packing.k(x), packing.v(x), composition.scores(mask), packing.out(y), norms);
  const auto saved_x = SavedTensor::in_graph(x);
  const SavedTensor saved_mask(mask), result(y);
  autograd::record(
      y, name_of(kOp), {x},
      {.fused =
           [=](const Tensor& dout, const BackwardContext& context) {
             const Tensor projected = context.saved(saved_x), dx = empty_like(projected);
             kernels::Attention::on(dout.device())
                 .attention_backward(packing.q(projected), packing.k(projected), packing.v(projected),
                                     composition.scores(context.saved(saved_mask)), packing.out(context.saved(result)),
                                     norms, packing.out(dout), packing.q(dx), packing.k(dx), packing.v(dx));
             return std::vector<Tensor>{dx};
           },
       .recorded =
           [=](const Tensor& dout, const BackwardContext& context) {
             const std::vector<Tensor> parts =
                 split_heads(widened(context.saved(saved_x)), packing.counts(), packing.channels);
             const Tensor slopes = split_heads(widened(dout), {packing.heads}, packing.channels)[0];
             std::vector<Tensor> grads =
                 composition.gradients(parts[0], parts[1], parts[2], widened(context.saved(saved_mask)), norms, slopes);
             for (std::size_t i = 0; i < grads.size(); ++i) grads[i] = reshape(grads[i], parts[i].shape());
             return std::vector<Tensor>{join_heads(grads)};
           }});
  autograd::note_options(
      y, ScoreOptions{.scale = composition.scale, .causal = composition.causal, .heads = heads, .kv_heads = kv_heads},
      mask);
  return y;
}

}  // namespace lockstep::ops
