// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/heads.h"

#include <fmt/format.h>

#include <numeric>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/base/error.h"
#include "runtime/kernels/movement.h"

namespace lockstep::ops {

using autograd::BackwardContext;

namespace {

/// The heads from channel `first` on of a sequence [N, T, width], in the order [N, heads, T, channels].
kernels::Walk heads_walk(std::int64_t length, std::int64_t width, std::int64_t first, std::int64_t channels) {
  kernels::Walk walk;
  walk.offset = first;
  walk.strides[0] = length * width;
  walk.strides[1] = channels;
  walk.strides[2] = width;
  walk.strides[3] = 1;
  return walk;
}

}  // namespace

std::vector<Tensor> split_heads(const Tensor& input, const std::vector<std::int64_t>& heads, std::int64_t channels) {
  const Tensor x = amp::autocast(amp::Op::kSplitHeads, input);
  const std::int64_t all = std::accumulate(heads.begin(), heads.end(), std::int64_t{0});
  if (x.shape().rank() != 3 || heads.empty() || channels < 1 || x.size(2) != all * channels) {
    throw ShapeError(
        fmt::format("split_heads of {}: expected [N, T, {} heads * {} channels]", describe(x), all, channels));
  }
  std::vector<Tensor> parts;
  std::int64_t first = 0;
  for (const std::int64_t count : heads) {
    if (count < 0) throw ShapeError(fmt::format("split_heads: {} heads", count));
    const Tensor& part =
        parts.emplace_back(Tensor::empty({x.size(0), count, x.size(1), channels}, x.dtype(), x.device()));
    kernels::Movement::on(x.device())
        .copy_strided(x, heads_walk(x.size(1), x.size(2), first, channels), part.shape(), part,
                      kernels::dense_walk(part.shape()));
    first += count * channels;
  }
  std::vector<Shape> shapes;
  for (const Tensor& part : parts) shapes.push_back(part.shape());
  autograd::record(
      parts, name_of(amp::Op::kSplitHeads), {x},
      {.recorded = [shapes, dtype = x.dtype(), device = x.device()](const Tensor&, const BackwardContext& context) {
        std::vector<Tensor> arrived(context.gradients().begin(), context.gradients().end());
        for (std::size_t i = 0; i < arrived.size(); ++i) {
          if (!arrived[i].defined()) arrived[i] = Tensor::zeros(shapes[i], dtype, device);
        }
        return std::vector<Tensor>{join_heads(arrived)};
      }});
  return parts;
}

Tensor join_heads(const std::vector<Tensor>& given) {
  if (given.empty()) throw UsageError("join_heads of no tensors");
  std::vector<Tensor> parts;
  std::vector<std::int64_t> heads;
  for (const Tensor& part : given) {
    const Tensor& first = given.front();
    require_defined(part, name_of(amp::Op::kJoinHeads), "one of the parts");
    const bool fits = part.shape().rank() == 4 && first.shape().rank() == 4 && part.dtype() == first.dtype() &&
                      part.shape().with(1, first.size(1)) == first.shape();
    if (!fits) {
      throw ShapeError(
          fmt::format("join_heads of {} and {}: expected [N, heads, T, channels] of one dtype, which may "
                      "differ in heads alone",
                      describe(first), describe(part)));
    }
    parts.push_back(amp::autocast(amp::Op::kJoinHeads, part));
    heads.push_back(part.size(1));
  }
  const Tensor& like = parts.front();
  const std::int64_t channels = like.size(3);
  const std::int64_t width = std::accumulate(heads.begin(), heads.end(), std::int64_t{0}) * channels;
  const Tensor y = Tensor::empty({like.size(0), like.size(2), width}, like.dtype(), like.device());
  std::int64_t first = 0;
  for (const Tensor& part : parts) {
    kernels::Movement::on(y.device())
        .copy_strided(part, kernels::dense_walk(part.shape()), part.shape(), y,
                      heads_walk(like.size(2), width, first, channels));
    first += part.size(1) * channels;
  }
  autograd::record(y, name_of(amp::Op::kJoinHeads), parts,
                   {.recorded = [heads, channels](const Tensor& dy, const BackwardContext&) {
                     return split_heads(dy, heads, channels);
                   }});
  return y;
}

}  // namespace lockstep::ops
