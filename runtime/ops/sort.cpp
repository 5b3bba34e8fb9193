// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/sort.h"

#include <fmt/format.h>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/base/error.h"
#include "runtime/kernels/indexing.h"
#include "runtime/ops/dims.h"
#include "runtime/ops/indexing.h"

namespace lockstep::ops {

namespace {

/// Where the k first elements along dimension `dim` lie.
Tensor first_places(amp::Op op, const Tensor& x, int dim, std::int64_t k, bool descending) {
  const Around whole(x.shape(), dim);
  const Shape shape = x.shape().rank() == 0 ? x.shape() : x.shape().with(dim, k);
  const Tensor indices = Tensor::empty(shape, DType::kInt64, x.device());
  kernels::Indexing::on(x.device()).order(x.detach(whole.shape()), descending, indices.detach(whole.with(k)));
  autograd::record(indices, name_of(op), {x}, {});
  return indices;
}

}  // namespace

Tensor argsort(const Tensor& input, int dim_in, bool descending) {
  const int dim = dim_of("argsort", dim_in, input);
  const Tensor x = amp::autocast(amp::Op::kSort, input);
  return first_places(amp::Op::kSort, x, dim, Around(x.shape(), dim).n, descending);
}

Sorted sort(const Tensor& input, int dim_in, bool descending) {
  const int dim = dim_of("sort", dim_in, input);
  const Tensor x = amp::autocast(amp::Op::kSort, input);
  const Tensor indices = first_places(amp::Op::kSort, x, dim, Around(x.shape(), dim).n, descending);
  return {gather(x, dim, indices), indices};
}

Sorted topk(const Tensor& input, std::int64_t k, int dim_in, bool largest) {
  const int dim = dim_of("topk", dim_in, input);
  const Tensor x = amp::autocast(amp::Op::kTopk, input);
  const std::int64_t n = Around(x.shape(), dim).n;
  if (k < 0 || k > n || (k == 0 && x.shape().rank() == 0)) {
    throw ShapeError(fmt::format("topk of {}: {} of the {} elements along dimension {}", describe(x), k, n, dim));
  }
  const Tensor indices = first_places(amp::Op::kTopk, x, dim, k, largest);
  return {gather(x, dim, indices), indices};
}

}  // namespace lockstep::ops
