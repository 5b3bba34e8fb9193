// SPDX-License-Identifier: Apache-2.0
#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/ops/dims.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/softmax.h"
#include "runtime/ops/without_autocast.h"

namespace lockstep::ops {

namespace {

/// along_last(x) along another dimension.
template <class Along>
Tensor along_dim(amp::Op op, const Tensor& input, int dim_in, std::optional<DType> dtype, Along along_last) {
  const Tensor x = dtype ? autograd::cast(input, *dtype) : amp::autocast(op, input);
  const int rank = x.shape().rank();
  const int dim = dim_of(name_of(op), dim_in, rank);
  const WithoutAutocast as_it_is;
  if (rank == 0) return reshape(along_last(reshape(x, {1})), {});
  if (dim == rank - 1) return along_last(x);
  return transpose(along_last(transpose(x, dim, -1)), dim, -1);
}

}  // namespace

Tensor softmax(const Tensor& x, int dim, std::optional<DType> dtype) {
  return along_dim(amp::Op::kSoftmax, x, dim, dtype, [](const Tensor& at) { return softmax(at); });
}

Tensor log_softmax(const Tensor& x, int dim, std::optional<DType> dtype) {
  return along_dim(amp::Op::kLogSoftmax, x, dim, dtype, [](const Tensor& at) { return log_softmax(at); });
}

}  // namespace lockstep::ops
