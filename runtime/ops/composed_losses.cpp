// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/composed_losses.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/node.h"
#include "runtime/base/error.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/class_targets.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/factories.h"
#include "runtime/ops/indexing.h"
#include "runtime/ops/pair_loss.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/result.h"
#include "runtime/ops/scan.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/vector_norm.h"

namespace lockstep::ops {

namespace {

/// An input of a loss: cast as the policy says, and never left in 16 bits.
Tensor wide(amp::Op op, const Tensor& input) { return widened(amp::autocast(op, input)); }

/// Another input, in x's dtype.
Tensor beside(amp::Op op, const Tensor& x, const Tensor& input, std::string_view argument = "the target") {
  require_defined(input, name_of(op), argument);
  return autograd::cast(wide(op, input), x.dtype());
}
Tensor beside_if_defined(amp::Op op, const Tensor& x, const Tensor& input) {
  return input.defined() ? beside(op, x, input) : input;
}

void require_same_shape(amp::Op op, const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) {
    throw ShapeError(std::string(name_of(op)) + " of " + describe(a) + " and " + describe(b) + ": they need one shape");
  }
}

std::int64_t samples_of(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[0]; }

/// The factor of the sum over terms of this shape.
double weight_of(const LossReduction& reduction, const Shape& terms) {
  if (reduction.reduction == Reduction::kSum) return 1.0;
  const double samples = static_cast<double>(std::max<std::int64_t>(samples_of(terms), 1));
  const double elements = static_cast<double>(std::max<std::int64_t>(terms.numel(), 1)) / samples;
  return 1.0 / ((reduction.divisor > 0 ? reduction.divisor : samples) * elements);
}

Tensor reduced(const Tensor& terms, const LossReduction& reduction) {
  if (reduction.reduction == Reduction::kNone) return terms;
  const Tensor total = sum(terms);
  if (reduction.reduction == Reduction::kSum) return total;
  return scale(total, weight_of(reduction, terms.shape()));
}

/// factor * a loss of pairs that a kernel computes too.
Tensor loss_of_pairs(amp::Op op, const kernels::PairLossFunction& function, double factor, const Tensor& input,
                     const Tensor& target, const LossReduction& reduction, const PairTerms& terms) {
  if (reduction.reduction == Reduction::kNone) {
    const Tensor x = wide(op, input), t = beside(op, x, target);
    require_same_shape(op, x, t);
    return factor == 1.0 ? terms(x, t) : scale(terms(x, t), factor);
  }
  const Tensor x = pair_input(op, input), t = pair_target(op, x, target);
  require_same_shape(op, x, t);
  return sum_of_pairs(op, function, x, t, factor * weight_of(reduction, x.shape()), terms);
}

Tensor absolute_loss(amp::Op op, const Tensor& x, const Tensor& target, const LossReduction& reduction) {
  return loss_of_pairs(op, kernels::PairLoss::kAbsolute, 1.0, x, target, reduction,
                       [](const Tensor& found, const Tensor& wanted) { return abs(sub(found, wanted)); });
}

/// factor * huber
Tensor huber_loss(amp::Op op, double delta, double factor, const Tensor& x, const Tensor& target,
                  const LossReduction& reduction) {
  return loss_of_pairs(op, {kernels::PairLoss::kHuber, delta}, factor, x, target, reduction,
                       [delta](const Tensor& found, const Tensor& wanted) {
                         const Tensor r = sub(found, wanted), d = abs(r);
                         return where(le(d, delta), scale(mul(r, r), 0.5), scale(sub(d, 0.5 * delta), delta));
                       });
}

/// log(1 + e^x); the threshold lies where the two agree in every dtype.
Tensor log_one_plus_exp(const Tensor& x) { return softplus(x, 1.0, 40.0); }

/// x, whose last extent is 1, without that dimension.
Tensor without_last(const Tensor& x) {
  const auto extents = x.shape().extents();
  return reshape(x, Shape(extents.first(extents.size() - 1)));
}

Tensor weighted(const Tensor& terms, const Tensor& weight) { return weight.defined() ? mul(terms, weight) : terms; }

}  // namespace

Tensor l1(const Tensor& x, const Tensor& target, const LossReduction& reduction) {
  return absolute_loss(amp::Op::kL1, x, target, reduction);
}

Tensor smooth_l1(const Tensor& x, const Tensor& target, double beta, const LossReduction& reduction) {
  if (beta < 0) throw UsageError("smooth_l1: beta must not be negative, found " + std::to_string(beta));
  if (beta == 0) return absolute_loss(amp::Op::kSmoothL1, x, target, reduction);
  return huber_loss(amp::Op::kSmoothL1, beta, 1.0 / beta, x, target, reduction);
}

Tensor huber(const Tensor& x, const Tensor& target, double delta, const LossReduction& reduction) {
  if (!(delta > 0)) throw UsageError("huber: delta must be positive, found " + std::to_string(delta));
  return huber_loss(amp::Op::kHuber, delta, 1.0, x, target, reduction);
}

Tensor kl_div(const Tensor& x, const Tensor& target, bool log_target, const LossReduction& reduction) {
  constexpr amp::Op kOp = amp::Op::kKlDiv;
  if (log_target) {
    return loss_of_pairs(kOp, kernels::PairLoss::kKlDivergenceOfLogs, 1.0, x, target, reduction,
                         [](const Tensor& found, const Tensor& t) { return mul(exp(t), sub(t, found)); });
  }
  return loss_of_pairs(kOp, kernels::PairLoss::kKlDivergence, 1.0, x, target, reduction,
                       [](const Tensor& found, const Tensor& t) {
                         // t log t is 0 at 0, and so is its share of the gradient.
                         const Tensor positive = where(gt(t, 0), t, 1.0);
                         return sub(mul(positive, log(positive)), mul(t, found));
                       });
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyOptions& options) {
  constexpr amp::Op kOp = amp::Op::kBinaryCrossEntropyWithLogits;
  const Tensor x = wide(kOp, input);
  const Tensor t = beside(kOp, x, target);
  require_same_shape(kOp, x, t);
  const Tensor pos_weight = beside_if_defined(kOp, x, options.pos_weight),
               weight = beside_if_defined(kOp, x, options.weight);
  Tensor of_positive = log_one_plus_exp(neg(x));
  if (pos_weight.defined()) {
    of_positive = mul(add(mul(sub(pos_weight, 1), t), 1), of_positive);
  }
  const Tensor terms = add(mul(sub(1, t), x), of_positive);
  return reduced(weighted(terms, weight), options);
}

Tensor binary_cross_entropy(const Tensor& probabilities, const Tensor& target,
                            const BinaryCrossEntropyOptions& options) {
  constexpr amp::Op kOp = amp::Op::kBinaryCrossEntropy;
  const Tensor p = wide(kOp, probabilities);
  const Tensor t = beside(kOp, p, target);
  require_same_shape(kOp, p, t);
  if (options.pos_weight.defined()) throw UsageError("binary_cross_entropy has no pos_weight");
  const Tensor weight = beside_if_defined(kOp, p, options.weight);
  constexpr double kLeastLogarithm = -100.0;
  constexpr double kLeastVariance = 1e-12f;  // PyTorch's constant, a float for every dtype
  const auto logarithms = [](const Tensor& at) {
    return std::pair(clamp(log(at), kLeastLogarithm), clamp(log1p(neg(at)), kLeastLogarithm));
  };
  Tensor terms;
  {
    const autograd::NoGrad no_grad;
    const auto [log_p, log_rest] = logarithms(p);
    terms = neg(add(mul(t, log_p), mul(sub(1, t), log_rest)));
  }
  // Where a logarithm was cut off, the composition's gradient would be 0; PyTorch's is that of the uncut loss.
  autograd::record(
      terms, name_of(kOp), {p, t},
      {.recorded = [saved_p = autograd::SavedTensor::in_graph(p), saved_t = autograd::SavedTensor::in_graph(t),
                    logarithms](const Tensor& dy, const autograd::BackwardContext& context) {
        const Tensor& at = context.saved(saved_p);
        std::vector<Tensor> grads(2);
        if (context.needs(0)) {
          const Tensor variance = clamp(mul(at, sub(1, at)), kLeastVariance);
          grads[0] = mul(dy, div(sub(at, context.saved(saved_t)), variance));
        }
        if (context.needs(1)) {
          const auto [log_p, log_rest] = logarithms(at);
          grads[1] = mul(dy, sub(log_rest, log_p));
        }
        return grads;
      }});
  return reduced(weighted(terms, weight), options);
}

Tensor nll(const Tensor& input, const Tensor& targets, const NllOptions& options) {
  constexpr amp::Op kOp = amp::Op::kNll;
  const Tensor x = wide(kOp, input);
  const ClassTargets of(kOp, x, x.dtype(), targets, {options.weight, options.sample_weight, options.ignore_index});
  const std::int64_t rows = x.shape().rows(), classes = x.shape().back();
  const Tensor chosen = gather(reshape(x, {rows, classes}), 1, of.targets.classes.detach({rows, 1}));
  const Tensor weights = of.row_weights();
  Tensor terms = neg(reshape(chosen, {rows}));
  if (weights.defined()) terms = mul(terms, weights);
  // A row that counts for nothing may hold what it likes.
  if (of.targets.row_weights.defined()) terms = where(eq(of.targets.row_weights, 0), 0.0, terms);
  if (options.reduction == Reduction::kNone) return reshape(terms, targets.shape());
  const Tensor total = sum(terms);
  if (options.reduction == Reduction::kSum) return total;
  if (options.divisor > 0) return scale(total, 1.0 / options.divisor);
  return weights.defined() ? div(total, sum(weights)) : scale(total, 1.0 / static_cast<double>(rows));
}

Tensor hinge_embedding(const Tensor& input, const Tensor& target, double margin, const LossReduction& reduction) {
  constexpr amp::Op kOp = amp::Op::kHingeEmbedding;
  const Tensor x = wide(kOp, input);
  const Tensor t = beside(kOp, x, target);
  require_same_shape(kOp, x, t);
  const Tensor of_positive = where(ne(t, -1), x, 0.0);
  return reduced(add(where(ne(t, 1), clamp(sub(margin, x), 0.0), 0.0), of_positive), reduction);
}

Tensor soft_margin(const Tensor& input, const Tensor& target, const LossReduction& reduction) {
  constexpr amp::Op kOp = amp::Op::kSoftMargin;
  const Tensor x = wide(kOp, input);
  const Tensor t = beside(kOp, x, target);
  require_same_shape(kOp, x, t);
  return reduced(log_one_plus_exp(neg(mul(t, x))), reduction);
}

Tensor margin_ranking(const Tensor& first, const Tensor& second, const Tensor& target, double margin,
                      const LossReduction& reduction) {
  constexpr amp::Op kOp = amp::Op::kMarginRanking;
  const Tensor a = wide(kOp, first);
  const Tensor b = beside(kOp, a, second, "b"), t = beside(kOp, a, target);
  require_same_shape(kOp, a, b);
  require_same_shape(kOp, a, t);
  return reduced(clamp(sub(margin, mul(t, sub(a, b))), 0.0), reduction);
}

Tensor cosine_embedding(const Tensor& first, const Tensor& second, const Tensor& target, double margin,
                        const LossReduction& reduction) {
  constexpr amp::Op kOp = amp::Op::kCosineEmbedding;
  const Tensor a = wide(kOp, first);
  const Tensor b = beside(kOp, a, second, "b"), t = beside(kOp, a, target);
  require_same_shape(kOp, a, b);
  if (a.shape().rank() < 1 || t.numel() != a.shape().rows()) {
    throw ShapeError("cosine_embedding of " + describe(a) + " needs a target a row, found " + describe(t));
  }
  constexpr double kEps = 1e-12;  // PyTorch's
  const auto square = [](const Tensor& x) { return add(sum_of_rows(mul(x, x)), kEps); };
  const Tensor cosine = div(sum_of_rows(mul(a, b)), sqrt(mul(square(a), square(b))));
  const Tensor sign = reshape(t, cosine.shape());
  const Tensor terms =
      add(where(eq(sign, 1), sub(1, cosine), 0.0), where(eq(sign, -1), clamp(sub(cosine, margin), 0.0), 0.0));
  return reduced(without_last(terms), reduction);
}

Tensor triplet_margin(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                      const TripletMarginOptions& options) {
  constexpr amp::Op kOp = amp::Op::kTripletMargin;
  const Tensor a = wide(kOp, anchor);
  const Tensor near = beside(kOp, a, positive, "the positive"), far = beside(kOp, a, negative, "the negative");
  require_same_shape(kOp, a, near);
  require_same_shape(kOp, a, far);
  if (a.shape().rank() < 1) throw ShapeError("triplet_margin needs rows of channels, found " + describe(a));
  const auto between = [&](const Tensor& x, const Tensor& y) {
    return vector_norm(add(sub(x, y), options.eps), options.p, -1, {.keepdim = true});
  };
  Tensor to_far = between(a, far);
  if (options.swap) to_far = minimum(to_far, between(near, far));
  return reduced(without_last(clamp(add(sub(between(a, near), to_far), options.margin), 0.0)), options);
}

Tensor poisson_nll(const Tensor& input, const Tensor& target, const PoissonNllOptions& options) {
  constexpr amp::Op kOp = amp::Op::kPoissonNll;
  const Tensor x = wide(kOp, input);
  const Tensor t = beside(kOp, x, target);
  require_same_shape(kOp, x, t);
  Tensor terms = options.log_input ? sub(exp(x), mul(t, x)) : sub(x, mul(t, log(add(x, options.eps))));
  if (options.full) {
    const Tensor large = where(gt(t, 1), t, 1.0);
    const Tensor logarithm = log(large);
    const Tensor stirling =
        add(sub(mul(large, logarithm), large), scale(add(logarithm, std::log(2 * std::numbers::pi)), 0.5));
    terms = add(terms, where(gt(t, 1), stirling, 0.0));
  }
  return reduced(terms, options);
}

namespace {

/// max(0, x), whose gradient at 0 is 0.
Tensor positive_part(const Tensor& x) { return where(gt(x, 0), x, 0.0); }

}  // namespace

Tensor multi_margin(const Tensor& input, const Tensor& targets, const MultiMarginOptions& options) {
  constexpr amp::Op kOp = amp::Op::kMultiMargin;
  if (options.p != 1 && options.p != 2) {
    throw UsageError("multi_margin: p must be 1 or 2, found " + std::to_string(options.p));
  }
  const Tensor x = wide(kOp, input);
  const ClassTargets of(kOp, x, x.dtype(), targets, {options.weight, {}, {}});
  const std::int64_t rows = x.shape().rows(), classes = x.shape().back();
  const Tensor scores = reshape(x, {rows, classes});
  const Tensor chosen = gather(scores, 1, of.targets.classes.detach({rows, 1}));
  Tensor distances = positive_part(add(sub(scores, chosen), options.margin));
  if (options.p == 2) distances = mul(distances, distances);
  const Tensor others = sub(1, one_hot(of.targets.classes, classes, x.dtype()));
  const Tensor sums = reshape(sum_of_rows(mul(distances, others)), {rows});
  const Tensor terms = scale(weighted(sums, of.row_weights()), 1.0 / static_cast<double>(classes));
  return reduced(reshape(terms, targets.shape()), options);
}

Tensor multilabel_margin(const Tensor& input, const Tensor& targets, const LossReduction& reduction) {
  constexpr amp::Op kOp = amp::Op::kMultilabelMargin;
  const Tensor x = wide(kOp, input);
  if (x.shape().rank() < 1 || targets.dtype() != DType::kInt64 || targets.shape() != x.shape()) {
    throw ShapeError("multilabel_margin of " + describe(x) + " needs int64 targets of its shape, found " +
                     describe(targets));
  }
  const std::int64_t rows = x.shape().rows(), classes = x.shape().back();
  if (targets.device() == kCpu) {
    for (const std::int64_t target : targets.as<std::int64_t>()) {
      if (target >= -1 && target < classes) continue;
      throw UsageError("multilabel_margin: the target " + std::to_string(target) + " is outside [-1, " +
                       std::to_string(classes) + ")");
    }
  }
  const Tensor numbers = converted(targets.detach({rows, classes}), x.dtype());
  // 1 as long as no -1 came.
  const Tensor listed = cumprod(where(ge(numbers, 0), 1.0, zeros_like(numbers)), 1);
  const Tensor labels = converted(where(gt(listed, 0), numbers, 0.0), DType::kInt64);
  const Tensor others = where(gt(scatter_add(listed, 1, labels, classes), 0), 0.0, ones_like(numbers));
  const Tensor scores = reshape(x, {rows, classes});
  const Tensor chosen = reshape(gather(scores, 1, labels), {rows, classes, 1});
  const Tensor distances = positive_part(add(sub(reshape(scores, {rows, 1, classes}), chosen), 1));
  const Tensor counted = mul(reshape(listed, {rows, classes, 1}), reshape(others, {rows, 1, classes}));
  const Tensor sums = reshape(sum_of_rows(reshape(mul(distances, counted), {rows, classes * classes})), {rows});
  const auto extents = x.shape().extents();
  const Tensor terms = scale(sums, 1.0 / static_cast<double>(classes));
  return reduced(reshape(terms, Shape(extents.first(extents.size() - 1))), reduction);
}

Tensor dice(const Tensor& probabilities, const Tensor& target, double smooth, const LossReduction& reduction) {
  constexpr amp::Op kOp = amp::Op::kDice;
  const Tensor p = wide(kOp, probabilities);
  const Tensor t = beside(kOp, p, target);
  require_same_shape(kOp, p, t);
  if (p.shape().rank() < 1) throw ShapeError("dice needs samples [N, ...], found " + describe(p));
  const std::int64_t samples = p.size(0);
  const Shape rows{samples, samples > 0 ? p.numel() / samples : 0};
  const auto total = [&](const Tensor& x) { return sum_of_rows(reshape(x, rows)); };
  const Tensor overlap = add(scale(total(mul(p, t)), 2.0), smooth);
  return reduced(without_last(sub(1, div(overlap, add(add(total(p), total(t)), smooth)))), reduction);
}

}  // namespace lockstep::ops
