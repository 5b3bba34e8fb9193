// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/losses.h"

#include <algorithm>
#include <span>
#include <vector>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/node.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/losses.h"
#include "runtime/ops/both_backwards.h"
#include "runtime/ops/class_targets.h"
#include "runtime/ops/indexing.h"
#include "runtime/ops/operators.h"
#include "runtime/ops/pair_loss.h"
#include "runtime/ops/probability_targets.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/result.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/softmax.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::SavedTensor;

namespace {

double weight_of(const LossOptions& options, std::int64_t samples, double elements_per_sample) {
  const double divisor =
      options.divisor > 0 ? options.divisor : static_cast<double>(std::max<std::int64_t>(samples, 1));
  return 1.0 / (divisor * elements_per_sample);
}

/// The inputs of a cross entropy beside the logits.
struct Targets {
  SavedTensor classes;  ///< [rows]
  SavedTensor class_weights;
  SavedTensor row_weights;
  double smoothing;
  double weight;

  Targets(const kernels::CrossEntropyTargets& targets, double weight_in)
      : classes(targets.classes),
        class_weights(targets.class_weights),
        row_weights(targets.row_weights),
        smoothing(targets.label_smoothing),
        weight(weight_in) {}

  kernels::CrossEntropyTargets take(std::string_view operation) const {
    return {classes.take(operation), smoothing, class_weights.take(operation), row_weights.take(operation)};
  }
};

/// The factors [rows, 1] of each row's softmax in the gradient; undefined where all are 1.
Tensor shares_of_rows(const kernels::CrossEntropyTargets& targets) {
  const Shape column{targets.classes.numel(), 1};
  const Tensor rows = targets.row_weights.defined() ? targets.row_weights.detach(column) : Tensor();
  if (!targets.class_weights.defined()) return rows;
  const double classes = static_cast<double>(targets.class_weights.numel());
  const Tensor of_targets = index_select(targets.class_weights, 0, targets.classes) * (1 - targets.label_smoothing);
  const Tensor shares = reshape(of_targets + sum(targets.class_weights) * (targets.label_smoothing / classes), column);
  return rows.defined() ? shares * rows : shares;
}

/// dloss * weight * (softmax(x) - smoothed targets) of x [rows, classes]: the gradient of cross_entropy, an operation
/// of its own. log_sum_exp [rows] is that of x.
Tensor cross_entropy_gradient(const Tensor& input, const Targets& targets, const Tensor& log_sum_exp,
                              const Tensor& dloss) {
  constexpr amp::Op op = amp::Op::kCrossEntropyGradient;
  const Tensor x = amp::autocast(op, input);
  const Tensor dx = empty_like(x);
  kernels::Losses::on(x.device())
      .cross_entropy_backward(x, targets.take(name_of(op)), targets.weight, log_sum_exp, dloss, dx);
  autograd::record(
      dx, name_of(op), {x, dloss},
      {.recorded = [targets, x = SavedTensor::in_graph(x), log_sum_exp, dloss = SavedTensor::in_graph(dloss)](
                       const Tensor& grad, const BackwardContext& context) {
        std::vector<Tensor> grads(2);
        if (context.needs(0)) {
          const Tensor shares = shares_of_rows(targets.take(name_of(op)));
          const Tensor slope = softmax_gradient(softmax(widened(context.saved(x))), widened(grad));
          grads[0] = (shares.defined() ? slope * shares : slope) * (context.saved(dloss) * targets.weight);
        }
        if (context.needs(1)) {
          const Tensor one = empty_like(dloss.peek());
          kernels::fill(one, 1);
          const Tensor slope = cross_entropy_gradient(widened(context.saved(x)), targets, log_sum_exp, one);
          grads[1] = sum(widened(grad) * slope);
        }
        return grads;
      }});
  return dx;
}

struct CrossEntropy {
  static constexpr std::string_view kName = "cross_entropy";

  SavedTensor logits;
  Targets targets;
  Tensor log_sum_exp;

  Shape rows() const { return {logits.peek().shape().rows(), logits.peek().shape().back()}; }

  std::vector<Tensor> fused(const Tensor& dloss, const BackwardContext& context) const {
    const Tensor dx = empty_like(logits.peek());
    kernels::Losses::on(dx.device())
        .cross_entropy_backward(context.saved(logits).detach(rows()), targets.take(kName), targets.weight, log_sum_exp,
                                dloss, dx.detach(rows()));
    return {dx};
  }

  std::vector<Tensor> recorded(const Tensor& dloss, const BackwardContext& context) const {
    targets.take(kName);  // for the error that names the operation
    const Tensor x = reshape(context.saved(logits), rows());
    return {reshape(cross_entropy_gradient(x, targets, log_sum_exp, dloss), logits.peek().shape())};
  }
};

}  // namespace

Tensor cross_entropy(const Tensor& input, const Tensor& targets, const LossOptions& options) {
  if (targets.defined() && is_floating(targets.dtype())) return cross_entropy_of_probabilities(input, targets, options);
  // The kernel reads 16-bit logits exactly and computes in float32: a cast to that would be a copy for nothing.
  const bool kernel_widens = amp::dtype_for(amp::Op::kCrossEntropy, input) == DType::kFloat32;
  const Tensor logits = kernel_widens ? input : amp::autocast(amp::Op::kCrossEntropy, input);
  ClassTargets of(amp::Op::kCrossEntropy, logits, wide_of(logits.dtype()), targets,
                  {options.weight, options.sample_weight, options.ignore_index});
  of.targets.label_smoothing = options.label_smoothing;
  const std::int64_t rows = logits.shape().rows();
  const bool divides_by_weights = of.targets.weighted() && !(options.divisor > 0);
  const double weight = divides_by_weights ? 1.0 : weight_of(options, rows, 1.0);
  const Tensor x = logits.detach({rows, logits.shape().back()});
  const Tensor loss = Tensor::empty({}, wide_of(x.dtype()), x.device());
  const Tensor log_sum_exp = Tensor::empty({rows}, wide_of(x.dtype()), x.device());
  kernels::Losses::on(x.device()).cross_entropy(x, of.targets, weight, loss, log_sum_exp);
  autograd::record(loss, name_of(amp::Op::kCrossEntropy), {logits},
                   both_of(CrossEntropy{SavedTensor::in_graph(logits), Targets(of.targets, weight), log_sum_exp}));
  return divides_by_weights ? loss / sum(of.row_weights()) : loss;
}

namespace {

/// Weights [N] as constants [N, 1, ...] beside x [N, ...], in its dtype.
Tensor column(const Tensor& weights, const Tensor& x) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(std::max(x.shape().rank(), 1)), 1);
  extents[0] = x.shape().rank() == 0 ? 1 : x.size(0);
  if (weights.numel() != extents[0]) {
    throw ShapeError("mse of " + describe(x) + " needs a weight a sample, found " + describe(weights));
  }
  return converted(weights.detach(), x.dtype()).detach(Shape(std::span<const std::int64_t>(extents)));
}

}  // namespace

Tensor mse(const Tensor& input, const Tensor& target_in, const LossOptions& options) {
  if (options.weight.defined() || options.ignore_index) {
    throw UsageError("mse: class weights and an ignored class are cross_entropy's");
  }
  // Differences of 16-bit values need more than their precision: float32 even outside autocast.
  const Tensor x = pair_input(amp::Op::kMse, input), target = pair_target(amp::Op::kMse, x, target_in);
  if (x.shape() != target.shape()) throw ShapeError("mse of " + describe(x) + " and " + describe(target));
  const std::int64_t samples = x.shape().rank() == 0 ? 1 : x.size(0);
  double elements = 1;
  for (int d = 1; d < x.shape().rank(); ++d) elements *= static_cast<double>(x.size(d));
  const double weight = weight_of(options, samples, std::max(elements, 1.0));
  if (options.sample_weight.defined()) {
    const Tensor distance = widened(x) - widened(target);
    return sum(distance * distance * column(options.sample_weight, distance)) * weight;
  }
  return sum_of_pairs(amp::Op::kMse, kernels::PairLoss::kSquare, x, target, weight,
                      [](const Tensor& found, const Tensor& wanted) {
                        const Tensor distance = found - wanted;
                        return distance * distance;
                      });
}

}  // namespace lockstep::ops
