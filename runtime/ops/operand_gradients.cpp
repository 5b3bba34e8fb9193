// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/operand_gradients.h"

#include <utility>

#include "runtime/autograd/cast.h"
#include "runtime/ops/both_backwards.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/broadcast_sum.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::GradTarget;
using autograd::SavedTensor;

namespace {

/// An operand that was broadcast, as the backward needs it; undefined for any other operand.
SavedTensor if_broadcast(const Tensor& operand, const Tensor& result) {
  return operand.shape() == result.shape() ? SavedTensor() : SavedTensor(operand);
}

/// The backward of an operation on operands that may have been broadcast.
struct OfOperands {
  std::vector<SavedTensor> broadcast;
  Wide wide;
  OperandGradient gradient;

  OfOperands(const std::vector<Tensor>& operands, const Tensor& result, Wide which, OperandGradient of_elements)
      : wide(which), gradient(std::move(of_elements)) {
    for (const Tensor& one : operands) broadcast.push_back(if_broadcast(one, result));
  }

  bool is_broadcast(std::size_t i) const { return broadcast[i].peek().defined(); }

  Tensor of_elements(const Tensor& grad, const BackwardContext& context, std::size_t i) const {
    const bool widens = wide == Wide::kAlways || (wide == Wide::kSummed && is_broadcast(i));
    return gradient(widens ? widened(grad) : grad, context, i);
  }

  std::vector<Tensor> recorded(const Tensor& grad, const BackwardContext& context) const {
    std::vector<Tensor> grads(broadcast.size());
    for (std::size_t i = 0; i < grads.size(); ++i) {
      if (!context.needs(i)) continue;
      const Tensor elements = of_elements(grad, context, i);
      grads[i] =
          autograd::cast(is_broadcast(i) ? sum_to(elements, broadcast[i].peek().shape()) : elements, grad.dtype());
    }
    return grads;
  }

  std::vector<Tensor> fused(const Tensor& grad, const BackwardContext& context) const {
    std::vector<Tensor> grads(broadcast.size());
    for (std::size_t i = 0; i < grads.size(); ++i) {
      if (!context.needs(i)) continue;
      const Tensor elements = of_elements(grad, context, i);
      if (!is_broadcast(i)) {
        grads[i] = autograd::cast(elements, grad.dtype());
        continue;
      }
      // The sum goes where a parameter's gradient belongs.
      const GradTarget target = context.target(i, broadcast[i].peek());
      sum_broadcast(elements, target.accumulate, target.out);
      grads[i] = target.out;
    }
    return grads;
  }
};

}  // namespace

Tensor operand(const SavedTensor& saved, const Tensor& grad, const BackwardContext& context) {
  return autograd::cast(context.saved(saved), grad.dtype());
}

autograd::Backward backward_of(const std::vector<Tensor>& operands, const Tensor& result, Wide wide,
                               OperandGradient gradient) {
  return both_of(OfOperands(operands, result, wide, std::move(gradient)));
}

}  // namespace lockstep::ops
