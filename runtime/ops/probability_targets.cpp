// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/probability_targets.h"

#include <fmt/format.h>

#include <algorithm>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/base/error.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/softmax.h"

namespace lockstep::ops {

namespace {

void require_fitting(const Tensor& logits, const Tensor& targets, const LossOptions& options) {
  if (logits.shape().rank() == 0 || targets.shape() != logits.shape()) {
    throw ShapeError(fmt::format("cross_entropy of {}: targets that are probabilities have its shape, found {}",
                                 describe(logits), describe(targets)),
                     "Targets that are classes are int64.");
  }
  if (options.ignore_index) {
    throw UsageError("cross_entropy: ignore_index is of classes, and the targets are probabilities",
                     "Give such samples a sample_weight of 0.");
  }
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
    throw UsageError(
        fmt::format("cross_entropy: label_smoothing must be in [0, 1], found {}", options.label_smoothing));
  }
}

/// A weight of this shape as a constant in x's dtype.
Tensor weight_in(const Tensor& x, const char* name, const Tensor& weight, const Shape& shape) {
  if (weight.shape() != shape) {
    throw ShapeError(
        fmt::format("cross_entropy of {}: {} must be {}, found {}", describe(x), name, shape.str(), describe(weight)));
  }
  return weight.detach().to(x.dtype());
}

}  // namespace

Tensor cross_entropy_of_probabilities(const Tensor& input, const Tensor& given, const LossOptions& options) {
  const Tensor logits = widened(amp::autocast(amp::Op::kCrossEntropy, input));
  require_fitting(logits, given, options);
  const Shape& shape = logits.shape();
  Tensor targets = autograd::cast(given, logits.dtype());
  if (const double smoothing = options.label_smoothing; smoothing > 0) {
    targets = add(scale(targets, 1 - smoothing), smoothing / static_cast<double>(shape.back()));
  }
  Tensor terms = mul(log_softmax(logits), targets);
  if (options.weight.defined()) terms = mul(terms, weight_in(logits, "weight", options.weight, {shape.back()}));
  Tensor of_rows = sum(terms, -1), weights;
  if (options.sample_weight.defined()) {
    weights = weight_in(logits, "sample_weight", options.sample_weight, of_rows.shape());
    of_rows = mul(of_rows, weights);
  }
  const Tensor loss = scale(sum(of_rows), -1);
  if (options.divisor > 0) return scale(loss, 1 / options.divisor);
  if (weights.defined()) return div(loss, sum(weights));
  return scale(loss, 1 / static_cast<double>(std::max<std::int64_t>(shape.rows(), 1)));
}

}  // namespace lockstep::ops
