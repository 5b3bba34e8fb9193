// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/pair_loss.h"

#include <array>
#include <utility>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/engine.h"
#include "runtime/autograd/node.h"
#include "runtime/kernels/losses.h"
#include "runtime/ops/both_backwards.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/result.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;

namespace {

struct SumOfPairs {
  kernels::PairLossFunction function;
  SavedTensor x;
  SavedTensor target;
  double weight;
  PairTerms terms;

  std::vector<Tensor> fused(const Tensor& dloss, const BackwardContext& context) const {
    std::vector<Tensor> grads(2);
    for (const kernels::PairSide side : {kernels::PairSide::kX, kernels::PairSide::kTarget}) {
      const auto i = static_cast<std::size_t>(side);
      if (!context.needs(i)) continue;
      grads[i] = empty_like(side == kernels::PairSide::kX ? x.peek() : target.peek());
      kernels::Losses::on(dloss.device())
          .pair_loss_backward(function, context.saved(x), context.saved(target), side, weight, dloss, grads[i]);
    }
    return grads;
  }

  std::vector<Tensor> recorded(const Tensor& dloss, const BackwardContext& context) const {
    // Places of their own in the graph: where one input is computed from the other, the gradients end here all the
    // same.
    const auto here = [&](const SavedTensor& saved) {
      const Tensor& input = context.saved(saved);
      return reshape(input, input.shape());
    };
    const std::array<Tensor, 2> inputs{here(x), here(target)};
    const Tensor loss = scale(sum(terms(widened(inputs[0]), widened(inputs[1]))), weight);
    std::vector<Tensor> grads(2);
    for (std::size_t i = 0; i < 2; ++i) {
      if (context.needs(i))
        grads[i] = autograd::grad(loss, {inputs[i]}, dloss, {.create_graph = true, .allow_unused = true})[0];
    }
    return grads;
  }
};

}  // namespace

Tensor pair_input(amp::Op op, const Tensor& input) {
  return amp::dtype_for(op, input) == DType::kFloat32 ? input : amp::autocast(op, input);
}

Tensor pair_target(amp::Op op, const Tensor& x, const Tensor& target) {
  require_defined(target, name_of(op), "the target");
  const Tensor read = pair_input(op, target);
  return read.dtype() == x.dtype() ? read : autograd::cast(read, wide_of(x.dtype()));
}

Tensor sum_of_pairs(amp::Op op, const kernels::PairLossFunction& function, const Tensor& x, const Tensor& target,
                    double weight, PairTerms terms) {
  const Tensor loss = Tensor::empty({}, wide_of(x.dtype()), x.device());
  kernels::Losses::on(x.device()).pair_loss(function, x, target, weight, loss);
  autograd::record(
      loss, name_of(op), {x, target},
      both_of(SumOfPairs{function, SavedTensor::in_graph(x), SavedTensor::in_graph(target), weight, std::move(terms)}));
  return loss;
}

}  // namespace lockstep::ops
