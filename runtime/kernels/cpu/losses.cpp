// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/losses.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

const std::int64_t* checked_targets(const Tensor& targets, std::int64_t classes) {
  const std::span<const std::int64_t> labels = targets.as<std::int64_t>();
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] < 0 || labels[row] >= classes) {
      checks::target_out_of_range(static_cast<std::int64_t>(row), labels[row], classes);
    }
  }
  return labels.data();
}

/// Elements of a loss that are summed in one piece.
constexpr std::int64_t kChunkElements = 8192;
constexpr std::int64_t kGrainChunks = kGrainElements / kChunkElements;
/// A state of ctc takes as long as so many elements of a plain loop.
constexpr std::int64_t kTimeOfCtcState = 64;

/// The weights of a weighted loss as the loops read them: ones in place of those that were left out.
class Weights {
 public:
  explicit Weights(const CrossEntropyTargets& targets, std::int64_t classes)
      : ones_(static_cast<std::size_t>(std::max(classes, targets.classes.numel())), 1.0f),
        row_weights_(values_or_ones(targets.row_weights)),
        class_weights_(values_or_ones(targets.class_weights)),
        sum_(std::accumulate(class_weights_, class_weights_ + classes, 0.0)) {}

  WeightedTargets of(const std::int64_t* labels, double smoothing) const {
    return {labels, row_weights_, class_weights_, static_cast<float>(sum_), static_cast<float>(smoothing)};
  }

 private:
  const float* values_or_ones(const Tensor& weights) const {
    return weights.defined() ? weights.as<float>().data() : ones_.data();
  }

  std::vector<float> ones_;
  const float* row_weights_;
  const float* class_weights_;
  double sum_;
};

void cross_entropy(const Tensor& logits, const CrossEntropyTargets& targets, double weight, const Tensor& loss,
                   const Tensor& log_sum_exp) {
  checks::cross_entropy(logits, targets, loss, log_sum_exp);
  if (!is_fast(logits)) return reference::kLosses.cross_entropy(logits, targets, weight, loss, log_sum_exp);
  const std::int64_t classes = logits.shape().back();
  const std::int64_t* labels = checked_targets(targets.classes, classes);
  auto* const norms = static_cast<float*>(log_sum_exp.data());
  const std::int64_t chunk_rows = std::max<std::int64_t>(1, kChunkElements / std::max<std::int64_t>(classes, 1));
  const auto sum_over_rows = [&](auto of_rows) {
    const auto sums = reduce_chunks(logits.shape().rows(), chunk_rows, kGrainChunks, of_rows);
    kElementwise.fill(loss, weight * std::accumulate(sums.begin(), sums.end(), 0.0));
  };
  if (!targets.weighted()) {
    return sum_over_rows([&](std::int64_t first, std::int64_t rows) {
      return loops().cross_entropy(input(logits).from(first * classes), labels + first,
                                   static_cast<float>(targets.label_smoothing), norms + first, rows, classes);
    });
  }
  const Weights weights(targets, classes);
  const WeightedTargets weighted = weights.of(labels, targets.label_smoothing);
  sum_over_rows([&](std::int64_t first, std::int64_t rows) {
    return loops().weighted_cross_entropy(input(logits).from(first * classes), weighted.from(first), norms + first,
                                          rows, classes);
  });
}

void cross_entropy_backward(const Tensor& logits, const CrossEntropyTargets& targets, double weight,
                            const Tensor& log_sum_exp, const Tensor& dloss, const Tensor& dlogits) {
  checks::cross_entropy(logits, targets, dloss, log_sum_exp);
  checks::same("cross_entropy_backward", logits, dlogits);
  if (!is_fast(logits)) {
    return reference::kLosses.cross_entropy_backward(logits, targets, weight, log_sum_exp, dloss, dlogits);
  }
  const std::int64_t classes = logits.shape().back();
  const std::int64_t* labels = checked_targets(targets.classes, classes);
  const auto* const norms = static_cast<const float*>(log_sum_exp.data());
  const float factor = static_cast<float>(dloss.item() * weight);
  if (!targets.weighted()) {
    return parallel_rows(logits.shape().rows(), classes, [&](std::int64_t first, std::int64_t rows) {
      loops().cross_entropy_backward(input(logits).from(first * classes), labels + first,
                                     static_cast<float>(targets.label_smoothing), norms + first, factor,
                                     output(dlogits).from(first * classes), rows, classes);
    });
  }
  const Weights weights(targets, classes);
  const WeightedTargets weighted = weights.of(labels, targets.label_smoothing);
  parallel_rows(logits.shape().rows(), classes, [&](std::int64_t first, std::int64_t rows) {
    loops().weighted_cross_entropy_backward(input(logits).from(first * classes), weighted.from(first), norms + first,
                                            factor, output(dlogits).from(first * classes), rows, classes);
  });
}

void pair_loss(const PairLossFunction& function, const Tensor& x, const Tensor& target, double weight,
               const Tensor& loss) {
  checks::pair_loss(x, target, loss);
  if (!is_fast(x)) return reference::kLosses.pair_loss(function, x, target, weight, loss);
  const auto sums = reduce_chunks(x.numel(), kChunkElements, kGrainChunks, [&](std::int64_t first, std::int64_t n) {
    return loops().pair_loss(function, input(x).from(first), input(target).from(first), n);
  });
  kElementwise.fill(loss, weight * std::accumulate(sums.begin(), sums.end(), 0.0));
}

void pair_loss_backward(const PairLossFunction& function, const Tensor& x, const Tensor& target, PairSide side,
                        double weight, const Tensor& dloss, const Tensor& gradient) {
  checks::pair_loss_backward(x, target, side, dloss, gradient);
  if (!is_fast(x)) return reference::kLosses.pair_loss_backward(function, x, target, side, weight, dloss, gradient);
  const float factor = static_cast<float>(dloss.item() * weight);
  parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t n) {
    loops().pair_loss_backward(function, input(x).from(begin), input(target).from(begin), side, factor,
                               output(gradient).from(begin), n);
  });
}

/// Calls f(rows) for parts of the samples in parallel, where rows(tensor) is a tensor's part.
template <class F>
void parallel_samples(const Tensor& log_probs, const CtcTargets& targets, F f) {
  const std::int64_t n = log_probs.size(0);
  parallel_rows(n, log_probs.size(1) * (2 * targets.labels.size(1) + 1) * kTimeOfCtcState,
                [&](std::int64_t first, std::int64_t count) {
                  const auto rows = [&](const Tensor& tensor) { return tensor.detach_rows(first, first + count); };
                  const CtcTargets part{rows(targets.labels), rows(targets.input_lengths), rows(targets.target_lengths),
                                        targets.blank};
                  f(rows, part);
                });
}

void ctc(const Tensor& log_probs, const CtcTargets& targets, const Tensor& losses, const Tensor& alpha) {
  checks::ctc(log_probs, targets, losses, alpha);
  checks::ctc_in_range(log_probs, targets);
  parallel_samples(log_probs, targets, [&](auto rows, const CtcTargets& part) {
    reference::kLosses.ctc(rows(log_probs), part, rows(losses), rows(alpha));
  });
}

void ctc_backward(const Tensor& log_probs, const CtcTargets& targets, const Tensor& alpha, const Tensor& dlosses,
                  const Tensor& dlog_probs) {
  checks::ctc_backward(log_probs, targets, alpha, dlosses, dlog_probs);
  parallel_samples(log_probs, targets, [&](auto rows, const CtcTargets& part) {
    reference::kLosses.ctc_backward(rows(log_probs), part, rows(alpha), rows(dlosses), rows(dlog_probs));
  });
}

}  // namespace

const Losses kLosses{.cross_entropy = cross_entropy,
                     .cross_entropy_backward = cross_entropy_backward,
                     .pair_loss = pair_loss,
                     .pair_loss_backward = pair_loss_backward,
                     .ctc = ctc,
                     .ctc_backward = ctc_backward};

}  // namespace lockstep::kernels::cpu
