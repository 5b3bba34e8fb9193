// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/movement.h"

#include <fmt/format.h>

#include <algorithm>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/movement.h"
#include "runtime/ops/factories.h"
#include "runtime/ops/operation_options.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using kernels::Walk;

namespace {

std::int64_t& stride(Walk& walk, int d) { return walk.strides[static_cast<std::size_t>(d)]; }

/// The elements of x on a walk over `shape`, as a tensor of that shape.
Tensor walked(const Tensor& x, const Walk& from, const Shape& shape) {
  const Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  kernels::Movement::on(x.device()).copy_strided(x, from, shape, y, kernels::dense_walk(shape));
  return y;
}

/// Where slices of a tensor lie: begin, begin + step, ... along a dimension.
Walk slice_walk(const Shape& shape, int dim, std::int64_t begin, std::int64_t step) {
  Walk walk = kernels::dense_walk(shape);
  walk.offset = begin * stride(walk, dim);
  stride(walk, dim) *= step;
  return walk;
}

Tensor take_slice(const Tensor& x, int dim, std::int64_t begin, std::int64_t step, std::int64_t count);

/// The gradient of take_slice: x where the slice was taken from, in zeros of `shape`.
Tensor put_slice(const Tensor& x, const Shape& shape, int dim, std::int64_t begin, std::int64_t step) {
  const Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  const kernels::Movement& movement = kernels::Movement::on(x.device());
  kernels::fill(y, 0);
  movement.copy_strided(x, kernels::dense_walk(x.shape()), x.shape(), y, slice_walk(shape, dim, begin, step));
  autograd::record(y, "put_slice", {x},
                   {.recorded = [dim, begin, step, count = x.size(dim)](const Tensor& dy, const BackwardContext&) {
                     return std::vector<Tensor>{take_slice(dy, dim, begin, step, count)};
                   }});
  return y;
}

Tensor take_slice(const Tensor& x, int dim, std::int64_t begin, std::int64_t step, std::int64_t count) {
  const Tensor y = walked(x, slice_walk(x.shape(), dim, begin, step), x.shape().with(dim, count));
  autograd::record(y, name_of(amp::Op::kSlice), {x},
                   {.recorded = [shape = x.shape(), dim, begin, step](const Tensor& dy, const BackwardContext&) {
                     return std::vector<Tensor>{put_slice(dy, shape, dim, begin, step)};
                   }});
  autograd::note_options(y, SliceOptions{dim, begin, step});
  return y;
}

/// The parts of x, of these extents, as one operation. Its backward writes x's gradient once; that of slices would add
/// up a tensor of x's size for each part.
std::vector<Tensor> recorded_split(const Tensor& input, const std::vector<std::int64_t>& extents, int dim) {
  const Tensor x = amp::autocast(amp::Op::kSlice, input);
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  for (const std::int64_t extent : extents) {
    parts.push_back(walked(x, slice_walk(x.shape(), dim, begin, 1), x.shape().with(dim, extent)));
    begin += extent;
  }
  autograd::record(parts, "split", {x},
                   {.recorded = [shape = x.shape(), extents, dim](const Tensor&, const BackwardContext& context) {
                     std::vector<Tensor> grads(context.gradients().begin(), context.gradients().end());
                     const Tensor like = *std::ranges::find_if(grads, &Tensor::defined);
                     for (std::size_t i = 0; i < grads.size(); ++i) {
                       if (!grads[i].defined()) grads[i] = new_zeros(like, shape.with(dim, extents[i]));
                     }
                     return std::vector<Tensor>{cat(grads, dim)};
                   }});
  return parts;
}

/// The dimension, which a slice cannot do without.
int sliced_dim(std::string_view operation, const Tensor& x, int dim) {
  require_defined(x, operation, "the input");
  if (x.shape().rank() == 0) throw ShapeError(fmt::format("{} of a scalar", operation));
  return dim_of(operation, dim, x);
}

}  // namespace

Tensor permute(const Tensor& input, const Dims& order) {
  const Tensor x = amp::autocast(amp::Op::kPermute, input);
  const int rank = x.shape().rank();
  if (static_cast<int>(order.list().size()) != rank) {
    throw ShapeError(fmt::format("permute of {}: the order names {} dimensions", describe(x), order.list().size()));
  }
  if (rank > 0) dims_of("permute", order, rank);
  const Walk dense = kernels::dense_walk(x.shape());
  Walk walk;
  std::vector<std::int64_t> extents;
  std::vector<int> inverse(static_cast<std::size_t>(rank)), sources;
  for (int d = 0; d < rank; ++d) {
    const int from = dim_of("permute", order.list()[static_cast<std::size_t>(d)], rank);
    extents.push_back(x.size(from));
    stride(walk, d) = dense.strides[static_cast<std::size_t>(from)];
    inverse[static_cast<std::size_t>(from)] = d;
    sources.push_back(from);
  }
  const Tensor y = walked(x, walk, Shape(extents));
  autograd::record(y, name_of(amp::Op::kPermute), {x},
                   {.recorded = [inverse](const Tensor& dy, const BackwardContext&) {
                     return std::vector<Tensor>{permute(dy, inverse)};
                   }});
  autograd::note_options(y, PermuteOptions{sources});
  return y;
}

Tensor transpose(const Tensor& x, int first, int second) {
  require_defined(x, "transpose", "the input");
  const int rank = x.shape().rank();
  std::vector<int> order;
  for (int d = 0; d < rank; ++d) order.push_back(d);
  if (rank == 0) return permute(x, order);
  std::swap(order[static_cast<std::size_t>(dim_of("transpose", first, rank))],
            order[static_cast<std::size_t>(dim_of("transpose", second, rank))]);
  return permute(x, order);
}

Tensor flip(const Tensor& input, const Dims& dims) {
  const Tensor x = amp::autocast(amp::Op::kFlip, input);
  const DimSet set = dims.list().empty() ? DimSet{} : dims_of("flip", dims, x);
  Walk walk = kernels::dense_walk(x.shape());
  for (int d = 0; d < x.shape().rank(); ++d) {
    if (!set[static_cast<std::size_t>(d)]) continue;
    walk.offset += (x.size(d) - 1) * stride(walk, d);
    stride(walk, d) = -stride(walk, d);
  }
  const Tensor y = walked(x, walk, x.shape());
  autograd::record(y, name_of(amp::Op::kFlip), {x}, {.recorded = [dims](const Tensor& dy, const BackwardContext&) {
                     return std::vector<Tensor>{flip(dy, dims)};
                   }});
  return y;
}

Tensor repeat(const Tensor& x, const std::vector<std::int64_t>& times) {
  require_defined(x, "repeat", "the input");
  const int added = static_cast<int>(times.size()) - x.shape().rank();
  if (added < 0) {
    throw ShapeError(fmt::format("repeat of {}: {} numbers for its dimensions", describe(x), times.size()));
  }
  std::vector<std::int64_t> extents(static_cast<std::size_t>(added), 1);
  extents.insert(extents.end(), x.shape().extents().begin(), x.shape().extents().end());
  Tensor y = reshape(x, Shape(extents));
  for (std::size_t d = 0; d < times.size(); ++d) {
    if (times[d] < 0) throw ShapeError(fmt::format("repeat: {} times", times[d]));
    const int dim = static_cast<int>(d);
    if (times[d] == 0) y = slice(y, dim, 0, 0);
    if (times[d] > 1) y = cat(std::vector<Tensor>(static_cast<std::size_t>(times[d]), y), dim);
  }
  return y;
}

Tensor cat(const std::vector<Tensor>& tensors, int dim_in) {
  if (tensors.empty()) throw UsageError("cat of no tensors");
  for (std::size_t i = 0; i < tensors.size(); ++i) require_defined(tensors[i], "cat", fmt::format("tensor {}", i));
  const Tensor& first = tensors.front();
  const int dim = sliced_dim("cat", first, dim_in);
  DType dtype = amp::dtype_for(amp::Op::kCat, first);
  for (const Tensor& tensor : tensors) {
    if (is_floating(dtype) && is_floating(tensor.dtype())) dtype = promote(dtype, tensor.dtype());
  }
  std::vector<Tensor> inputs;
  std::vector<std::int64_t> extents;
  for (const Tensor& tensor : tensors) {
    if (tensor.dtype() != dtype && !(is_floating(tensor.dtype()) && is_floating(dtype))) {
      throw UsageError(fmt::format("cat of {} and {}: they need one dtype", describe(first), describe(tensor)),
                       "cast() one of them.");
    }
    if (tensor.shape().rank() != first.shape().rank() || tensor.shape().with(dim, first.size(dim)) != first.shape()) {
      throw ShapeError(fmt::format("cat along dimension {} of {} and {}: they may differ in that extent alone", dim,
                                   describe(first), describe(tensor)));
    }
    inputs.push_back(is_floating(dtype) ? autograd::cast(tensor, dtype) : tensor);
    extents.push_back(tensor.size(dim));
  }
  std::int64_t total = 0;
  for (const std::int64_t extent : extents) total += extent;
  const Tensor y = Tensor::empty(first.shape().with(dim, total), dtype, first.device());
  std::int64_t begin = 0;
  for (const Tensor& x : inputs) {
    kernels::Movement::on(y.device())
        .copy_strided(x, kernels::dense_walk(x.shape()), x.shape(), y, slice_walk(y.shape(), dim, begin, 1));
    begin += x.size(dim);
  }
  autograd::record(y, name_of(amp::Op::kCat), inputs, autograd::OnLosses::kAdds,
                   {.recorded = [extents, dim](const Tensor& dy, const BackwardContext& context) {
                     std::vector<Tensor> grads;
                     std::int64_t from = 0;
                     for (std::size_t i = 0; i < extents.size(); from += extents[i++]) {
                       grads.push_back(context.needs(i) ? take_slice(dy, dim, from, 1, extents[i]) : Tensor());
                     }
                     return grads;
                   }});
  autograd::note_options(y, AlongOptions{dim});
  return y;
}

Tensor stack(const std::vector<Tensor>& tensors, int dim) {
  std::vector<Tensor> thick;
  for (const Tensor& tensor : tensors) thick.push_back(unsqueeze(tensor, dim));
  return cat(thick, thick.empty() || dim >= 0 ? dim : dim + thick.front().shape().rank());
}

Tensor slice(const Tensor& input, int dim_in, std::int64_t begin, std::int64_t end, std::int64_t step) {
  const Tensor x = amp::autocast(amp::Op::kSlice, input);
  const int dim = sliced_dim("slice", x, dim_in);
  if (step < 1) throw ShapeError(fmt::format("slice: step {}, expected 1 or more", step));
  const Range range = range_in(x.size(dim), begin, end);
  return take_slice(x, dim, range.begin, step, (range.end - range.begin + step - 1) / step);
}

Tensor select(const Tensor& x, int dim_in, std::int64_t at) {
  const int dim = sliced_dim("select", x, dim_in);
  const std::int64_t extent = x.size(dim);
  if (at < -extent || at >= extent) {
    throw ShapeError(fmt::format("select: place {} of dimension {} of {}", at, dim, describe(x)));
  }
  const std::int64_t begin = at < 0 ? at + extent : at;
  return squeeze(slice(x, dim, begin, begin + 1), dim);
}

std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& extents, int dim_in) {
  const int dim = sliced_dim("split", x, dim_in);
  std::int64_t total = 0;
  for (const std::int64_t extent : extents) {
    if (extent < 0) throw ShapeError(fmt::format("split: an extent of {}", extent));
    total += extent;
  }
  if (total != x.size(dim)) {
    throw ShapeError(fmt::format("split of {} along dimension {}: the extents add up to {}", describe(x), dim, total));
  }
  if (autograd::grad_enabled() && x.requires_grad()) return recorded_split(x, extents, dim);
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  for (const std::int64_t extent : extents) {
    parts.push_back(slice(x, dim, begin, begin + extent));
    begin += extent;
  }
  return parts;
}

std::vector<Tensor> split(const Tensor& x, std::int64_t extent, int dim_in) {
  const int dim = sliced_dim("split", x, dim_in);
  if (extent < 1) throw ShapeError(fmt::format("split: an extent of {}, expected 1 or more", extent));
  std::vector<std::int64_t> extents;
  for (std::int64_t begin = 0; begin < x.size(dim); begin += extent) {
    extents.push_back(std::min(extent, x.size(dim) - begin));
  }
  // A dimension of extent 0 has one part, which is empty.
  if (extents.empty()) extents.push_back(0);
  return split(x, extents, dim);
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, int dim_in) {
  const int dim = sliced_dim("chunk", x, dim_in);
  if (chunks < 1) throw ShapeError(fmt::format("chunk: {} chunks, expected 1 or more", chunks));
  return split(x, std::max<std::int64_t>((x.size(dim) + chunks - 1) / chunks, 1), dim);
}

}  // namespace lockstep::ops
