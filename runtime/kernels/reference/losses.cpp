// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/losses.h"

#include <cmath>
#include <numeric>

#include "runtime/kernels/functors/pair_loss.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/softmax.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

// ctc.cpp
void ctc(const Tensor& log_probs, const CtcTargets& targets, const Tensor& losses, const Tensor& alpha);
void ctc_backward(const Tensor& log_probs, const CtcTargets& targets, const Tensor& alpha, const Tensor& dlosses,
                  const Tensor& dlog_probs);

namespace {

/// Weights of classes and of rows, ones where there are none.
struct Weights {
  Values classes;
  Values rows;
  double sum_of_classes;

  Weights(const CrossEntropyTargets& targets, std::int64_t n)
      : classes(targets.class_weights.defined() ? load(targets.class_weights)
                                                : Values(static_cast<std::size_t>(n), 1.0)),
        rows(targets.row_weights.defined() ? load(targets.row_weights)
                                           : Values(static_cast<std::size_t>(targets.classes.numel()), 1.0)),
        sum_of_classes(std::accumulate(classes.begin(), classes.end(), 0.0)) {}
};

std::size_t checked_target(std::span<const std::int64_t> targets, std::size_t row, std::int64_t classes) {
  const std::int64_t target = targets[row];
  if (target < 0 || target >= classes) {
    checks::target_out_of_range(static_cast<std::int64_t>(row), target, classes);
  }
  return static_cast<std::size_t>(target);
}

void cross_entropy(const Tensor& logits, const CrossEntropyTargets& targets, double weight, const Tensor& loss,
                   const Tensor& log_sum_exp) {
  checks::cross_entropy(logits, targets, loss, log_sum_exp);
  const std::int64_t classes = logits.shape().back();
  const std::span<const std::int64_t> labels = targets.classes.as<std::int64_t>();
  const double smoothing = targets.label_smoothing;
  const Weights weights(targets, classes);
  const Values values = load(logits);
  Values norms(labels.size());
  double total = 0;
  for (std::size_t r = 0; r < labels.size(); ++r) {
    const std::size_t target = checked_target(labels, r, classes);
    const std::span<const double> row(values.data() + r * static_cast<std::size_t>(classes),
                                      static_cast<std::size_t>(classes));
    norms[r] = reference::log_sum_exp(row);
    if (weights.rows[r] == 0) continue;
    double of_row = (1 - smoothing) * weights.classes[target] * (norms[r] - row[target]);
    // Skipped without smoothing: a logit of -inf in another class would add 0 * inf, a NaN.
    if (smoothing > 0) {
      for (std::size_t c = 0; c < row.size(); ++c) {
        of_row += smoothing / static_cast<double>(classes) * weights.classes[c] * (norms[r] - row[c]);
      }
    }
    total += weights.rows[r] * of_row;
  }
  store({weight * total}, loss);
  store(norms, log_sum_exp);
}

void cross_entropy_backward(const Tensor& logits, const CrossEntropyTargets& targets, double weight,
                            const Tensor& log_sum_exp, const Tensor& dloss, const Tensor& dlogits) {
  checks::cross_entropy(logits, targets, dloss, log_sum_exp);
  checks::same("cross_entropy_backward", logits, dlogits);
  const std::int64_t classes = logits.shape().back();
  const std::span<const std::int64_t> labels = targets.classes.as<std::int64_t>();
  const Weights weights(targets, classes);
  const Values norms = load(log_sum_exp);
  const double everywhere = targets.label_smoothing / static_cast<double>(classes);
  Values values = load(logits);
  for_each_row(values, classes, [&](std::size_t first, std::span<double> row) {
    const std::size_t r = first / row.size();
    const std::size_t target = checked_target(labels, r, classes);
    const double of_target = (1 - targets.label_smoothing) * weights.classes[target];
    const double factor = dloss.item() * weight * weights.rows[r];
    for (std::size_t c = 0; c < row.size(); ++c) {
      const double wanted = (c == target ? of_target : 0) + everywhere * weights.classes[c];
      const double share = (of_target + everywhere * weights.sum_of_classes) * std::exp(row[c] - norms[r]);
      row[c] = weights.rows[r] == 0 ? 0 : factor * (share - wanted);
    }
  });
  store(values, dlogits);
}

void pair_loss(const PairLossFunction& function, const Tensor& x, const Tensor& target, double weight,
               const Tensor& loss) {
  checks::pair_loss(x, target, loss);
  const Values found = load(x);
  const Values wanted = load(target);
  double total = 0;
  visit_pair_loss(function, [&](auto f) {
    for (std::size_t i = 0; i < found.size(); ++i) total += f.value(found[i], wanted[i]);
  });
  store({weight * total}, loss);
}

void pair_loss_backward(const PairLossFunction& function, const Tensor& x, const Tensor& target, PairSide side,
                        double weight, const Tensor& dloss, const Tensor& gradient) {
  checks::pair_loss_backward(x, target, side, dloss, gradient);
  const Values wanted = load(target);
  const double factor = dloss.item() * weight;
  Values values = load(x);
  visit_pair_slope(function, side, [&](auto slope) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = factor * slope(values[i], wanted[i]);
  });
  store(values, gradient);
}

}  // namespace

const Losses kLosses{.cross_entropy = cross_entropy,
                     .cross_entropy_backward = cross_entropy_backward,
                     .pair_loss = pair_loss,
                     .pair_loss_backward = pair_loss_backward,
                     .ctc = ctc,
                     .ctc_backward = ctc_backward};

}  // namespace lockstep::kernels::reference
