// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/softmax.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/kernels/backend.h"
#include "runtime/ops/both_backwards.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/operators.h"
#include "runtime/ops/result.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;

namespace {

struct Normalized {
  bool log;
  SavedTensor y;

  std::vector<Tensor> fused(const Tensor& dy, const BackwardContext& context) const {
    const Tensor dx = empty_like(dy);
    kernels::backend(dy.device()).softmax_backward(context.saved(y), log, dy, dx);
    return {dx};
  }

  std::vector<Tensor> recorded(const Tensor& gradient, const BackwardContext& context) const {
    const Tensor result = widened(context.result(y)), dy = widened(gradient);
    return {log ? dy - exp(result) * sum_of_rows(dy) : softmax_gradient(result, dy)};
  }
};

Tensor softmax(amp::Op op, bool log, const Tensor& input) {
  const Tensor x = amp::autocast(op, input);
  const Tensor y = empty_like(x);
  kernels::backend(x.device()).softmax(x, log, y);
  autograd::record(y, name_of(op), {x}, both_of(Normalized{log, SavedTensor(y)}));
  return y;
}

}  // namespace

Tensor softmax_gradient(const Tensor& y, const Tensor& dy) { return y * (dy - sum_of_rows(y * dy)); }

Tensor softmax(const Tensor& x) { return softmax(amp::Op::kSoftmax, false, x); }
Tensor log_softmax(const Tensor& x) { return softmax(amp::Op::kLogSoftmax, true, x); }

}  // namespace lockstep::ops
