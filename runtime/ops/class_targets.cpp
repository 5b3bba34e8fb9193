// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/class_targets.h"

#include <limits>
#include <string>

#include "runtime/autograd/cast.h"
#include "runtime/base/error.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/factories.h"
#include "runtime/ops/indexing.h"
#include "runtime/ops/result.h"

namespace lockstep::ops {

namespace {

void require_classes(amp::Op op, const Tensor& targets, std::int64_t classes,
                     const std::optional<std::int64_t>& ignored) {
  const auto labels = targets.as<std::int64_t>();
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] == ignored || (labels[row] >= 0 && labels[row] < classes)) continue;
    throw UsageError(std::string(name_of(op)) + ": the target of row " + std::to_string(row) + " is " +
                         std::to_string(labels[row]) + ", outside [0, " + std::to_string(classes) + ")",
                     "Check the labels of the data set against the model's number of classes, or name ignore_index.");
  }
}

Tensor weights_of(amp::Op op, std::string_view what, const Tensor& weights, std::int64_t n, DType dtype) {
  if (!weights.defined()) return weights;
  if (weights.numel() != n) {
    throw ShapeError(std::string(name_of(op)) + ": " + std::string(what) + " must have " + std::to_string(n) +
                     " elements, found " + describe(weights));
  }
  return autograd::cast(weights.detach(), dtype).detach({n});
}

}  // namespace

ClassTargets::ClassTargets(amp::Op op, const Tensor& x, DType dtype, const Tensor& classes,
                           const ClassWeights& weights) {
  require_defined(classes, name_of(op), "the targets");
  if (x.shape().rank() < 1) throw ShapeError(std::string(name_of(op)) + " of " + describe(x) + ": it has no classes");
  const std::int64_t rows = x.shape().rows(), n = x.shape().back();
  if (classes.dtype() != DType::kInt64 || classes.numel() != rows) {
    throw ShapeError(std::string(name_of(op)) + " of " + describe(x) + " needs " + std::to_string(rows) +
                     " targets, int64, found " + describe(classes));
  }
  targets.classes = classes.detach({rows});
  targets.class_weights = weights_of(op, "weight", weights.weight, n, dtype);
  targets.row_weights = weights_of(op, "sample_weight", weights.sample_weight, rows, dtype);
  if (classes.device() == kCpu) require_classes(op, targets.classes, n, weights.ignore_index);
  if (!weights.ignore_index) return;
  const Tensor labels = converted(targets.classes, dtype);
  const Tensor ignored = eq(labels, static_cast<double>(*weights.ignore_index));
  targets.classes = converted(where(ignored, 0.0, labels), DType::kInt64);
  targets.row_weights = where(ignored, 0.0, targets.row_weights.defined() ? targets.row_weights : ones_like(labels));
}

Tensor ClassTargets::row_weights() const {
  if (!targets.class_weights.defined()) return targets.row_weights;
  const Tensor of_classes = index_select(targets.class_weights, 0, targets.classes);
  return targets.row_weights.defined() ? mul(of_classes, targets.row_weights) : of_classes;
}

}  // namespace lockstep::ops
