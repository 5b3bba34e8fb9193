// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/indexing.h"

#include <fmt/format.h>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/indexing.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/dims.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/operation_options.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;

namespace {

void require_indices(std::string_view operation, const Tensor& indices) {
  require_defined(indices, operation, "indices");
  if (indices.dtype() == DType::kInt64) return;
  throw ShapeError(fmt::format("{}: indices must be int64, found {}", operation, describe(indices)));
}

/// Indices as the kernels take them: [m], or of the shape of the part that they name, [outer, m, inner].
Tensor as_middle(const Tensor& indices, const Shape& part) {
  return indices.shape().rank() == 1 && part.numel() != indices.numel() ? indices.detach() : indices.detach(part);
}

/// x at indices along a dimension; the other extents are x's.
Tensor picked(amp::Op op, const Tensor& x, int dim, const Tensor& indices, const Shape& shape) {
  const Around whole(x.shape(), dim);
  const Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  const Shape part = whole.with(Around(shape, dim).n);
  kernels::Indexing::on(x.device()).gather(x.detach(whole.shape()), as_middle(indices, part), y.detach(part));
  autograd::record(y, name_of(op), {x},
                   {.recorded = [indices = SavedTensor(indices), dim, n = whole.n](const Tensor& dy,
                                                                                   const BackwardContext& context) {
                     return std::vector<Tensor>{scatter_add(dy, dim, context.saved(indices), n)};
                   }});
  autograd::note_options(y, AlongOptions{dim}, indices);
  return y;
}

}  // namespace

Tensor index_select(const Tensor& input, int dim_in, const Tensor& indices) {
  const Tensor x = amp::autocast(amp::Op::kIndexSelect, input);
  require_indices("index_select", indices);
  if (x.shape().rank() == 0 || indices.shape().rank() != 1) {
    throw ShapeError(fmt::format("index_select of {} takes indices [m], found {}", describe(x), describe(indices)));
  }
  const int dim = dim_of("index_select", dim_in, x);
  return picked(amp::Op::kIndexSelect, x, dim, indices, x.shape().with(dim, indices.numel()));
}

Tensor gather(const Tensor& input, int dim_in, const Tensor& indices) {
  Tensor x = input;
  require_indices("gather", indices);
  const int dim = dim_of("gather", dim_in, x);
  bool fits = x.shape().rank() == indices.shape().rank();
  for (int d = 0; fits && d < x.shape().rank(); ++d) {
    if (d == dim) continue;
    fits = indices.size(d) <= x.size(d);
    if (fits && indices.size(d) < x.size(d)) x = slice(x, d, 0, indices.size(d));
  }
  if (!fits) {
    throw ShapeError(
        fmt::format("gather of {} along dimension {}: indices {} must have its rank and nowhere else a "
                    "larger extent",
                    describe(input), dim, describe(indices)));
  }
  return picked(amp::Op::kGather, amp::autocast(amp::Op::kGather, x), dim, indices, indices.shape());
}

Tensor scatter_add(const Tensor& input, int dim_in, const Tensor& indices, std::int64_t extent) {
  const Tensor x = amp::autocast(amp::Op::kScatterAdd, input);
  require_indices("scatter_add", indices);
  const int dim = dim_of("scatter_add", dim_in, x);
  const Around part(x.shape(), dim);
  if (indices.shape() != x.shape() && indices.shape() != Shape{part.n}) {
    throw ShapeError(fmt::format("scatter_add of {}: indices must have its shape or be [{}], found {}", describe(x),
                                 part.n, describe(indices)));
  }
  const Tensor y =
      Tensor::empty(x.shape().rank() == 0 ? Shape{extent} : x.shape().with(dim, extent), x.dtype(), x.device());
  kernels::Indexing::on(x.device())
      .scatter_add(x.detach(part.shape()), as_middle(indices, part.shape()), y.detach(part.with(extent)));
  autograd::record(y, name_of(amp::Op::kScatterAdd), {x},
                   {.recorded = [indices = SavedTensor(indices), dim, shape = x.shape()](
                                    const Tensor& dy, const BackwardContext& context) {
                     return std::vector<Tensor>{picked(amp::Op::kGather, dy, dim, context.saved(indices), shape)};
                   }});
  return y;
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) { return where(mask, value, x); }

Tensor one_hot(const Tensor& indices, std::int64_t classes, DType dtype) {
  require_indices("one_hot", indices);
  if (classes < 1) throw ShapeError(fmt::format("one_hot of {} classes", classes));
  const kernels::Indexing& indexing = kernels::Indexing::on(indices.device());
  const std::int64_t n = indices.numel();
  const DType sums = is_floating(dtype) ? dtype : DType::kFloat32;
  const Tensor ones = Tensor::empty({n, 1, 1}, sums, indices.device());
  kernels::fill(ones, 1);
  const Tensor hot = Tensor::empty({n, classes, 1}, sums, indices.device());
  indexing.scatter_add(ones, indices.detach({n, 1, 1}), hot);
  std::vector<std::int64_t> extents(indices.shape().extents().begin(), indices.shape().extents().end());
  extents.push_back(classes);
  if (sums == dtype) return hot.detach(Shape(extents));
  const Tensor out = Tensor::empty(Shape(extents), dtype, indices.device());
  kernels::cast(hot.detach(Shape(extents)), out);
  return out;
}

}  // namespace lockstep::ops
