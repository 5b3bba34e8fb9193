// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/softmax.h"

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/kernels/backend.h"
#include "runtime/ops/result.h"

namespace lockstep::ops {

namespace {

Tensor softmax(amp::Op op, bool log, const Tensor& input) {
  const Tensor x = amp::autocast(op, input);
  const Tensor y = empty_like(x);
  kernels::backend(x.device()).softmax(x, log, y);
  autograd::record(
      y, name_of(op), {x},
      {.fused = [log, y = autograd::SavedTensor(y)](const Tensor& dy, const autograd::BackwardContext& context) {
        const Tensor dx = empty_like(dy);
        kernels::backend(dy.device()).softmax_backward(context.saved(y), log, dy, dx);
        return std::vector<Tensor>{dx};
      }});
  return y;
}

}  // namespace

Tensor softmax(const Tensor& x) { return softmax(amp::Op::kSoftmax, false, x); }
Tensor log_softmax(const Tensor& x) { return softmax(amp::Op::kLogSoftmax, true, x); }

}  // namespace lockstep::ops
