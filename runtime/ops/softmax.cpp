// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/softmax.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/kernels/softmax.h"
#include "runtime/ops/both_backwards.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/dims.h"
#include "runtime/ops/operation_options.h"
#include "runtime/ops/operators.h"
#include "runtime/ops/result.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;

namespace {

/// Along which dimension kernels work: the last one, or the middle of three.
enum class Along { kLast, kMiddle };

Tensor sum_along(const Tensor& x, Along along) {
  return along == Along::kLast ? sum_of_rows(x) : sum_to(x, x.shape().with(1, 1));
}

Tensor gradient_along(const Tensor& y, const Tensor& dy, Along along) { return y * (dy - sum_along(y * dy, along)); }

struct Normalized {
  bool log;
  Along along;
  SavedTensor y;

  std::vector<Tensor> fused(const Tensor& dy, const BackwardContext& context) const {
    const Tensor dx = empty_like(dy);
    const kernels::Softmax& softmax = kernels::Softmax::on(dy.device());
    const auto kernel = along == Along::kLast ? softmax.softmax_backward : softmax.softmax_middle_backward;
    kernel(context.saved(y), log, dy, dx);
    return {dx};
  }

  std::vector<Tensor> recorded(const Tensor& gradient, const BackwardContext& context) const {
    const Tensor result = widened(context.result(y)), dy = widened(gradient);
    return {log ? dy - exp(result) * sum_along(dy, along) : gradient_along(result, dy, along)};
  }
};

Tensor normalized(amp::Op op, const Tensor& x, Along along) {
  const bool log = op == amp::Op::kLogSoftmax;
  const Tensor y = empty_like(x);
  const kernels::Softmax& softmax = kernels::Softmax::on(x.device());
  (along == Along::kLast ? softmax.softmax : softmax.softmax_middle)(x, log, y);
  autograd::record(y, name_of(op), {x}, both_of(Normalized{log, along, SavedTensor(y)}));
  autograd::note_options(y, SoftmaxOptions{along == Along::kLast});
  return y;
}

Tensor normalized_over(amp::Op op, const Tensor& input, int dim_in, std::optional<DType> dtype) {
  const Tensor x = dtype ? autograd::cast(input, *dtype) : amp::autocast(op, input);
  const int rank = x.shape().rank();
  const int dim = dim_of(name_of(op), dim_in, rank);
  if (rank > 0 && dim == rank - 1) return normalized(op, x, Along::kLast);
  return reshape(normalized(op, reshape(x, Around(x.shape(), dim).shape()), Along::kMiddle), x.shape());
}

}  // namespace

Tensor softmax_gradient(const Tensor& y, const Tensor& dy) { return gradient_along(y, dy, Along::kLast); }

Tensor softmax(const Tensor& x) {
  return normalized(amp::Op::kSoftmax, amp::autocast(amp::Op::kSoftmax, x), Along::kLast);
}
Tensor log_softmax(const Tensor& x) {
  return normalized(amp::Op::kLogSoftmax, amp::autocast(amp::Op::kLogSoftmax, x), Along::kLast);
}

Tensor softmax(const Tensor& x, int dim, std::optional<DType> dtype) {
  return normalized_over(amp::Op::kSoftmax, x, dim, dtype);
}
Tensor log_softmax(const Tensor& x, int dim, std::optional<DType> dtype) {
  return normalized_over(amp::Op::kLogSoftmax, x, dim, dtype);
}

}  // namespace lockstep::ops
