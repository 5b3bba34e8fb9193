// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/group/communicator.h"
#include "runtime/tensor/tensor.h"
#include "runtime/train/mask_metrics.h"
#include "runtime/train/number_metrics.h"
#include "runtime/train/record/eval_result.h"
#include "runtime/train/task.h"

namespace lockstep::train {

/// Counts what a model answers to samples, on this rank, and what that makes over all ranks: exact averages, whatever
/// the ranks' shares.
///
///   accuracy       share of the targets whose class has the highest output, the first one on ties
///   top5_accuracy  share of those whose class is among the five highest; of one label a sample and more than 5 classes
///   perplexity     e to the loss, of a label a token, without label smoothing
///   dice           mean over the samples of 2 |A and B| / (|A| + |B|), 1 where both are empty: of masks, A being where
///                  the answer's probability is above 0.5 and B where the target is; of classes a position in volumes
///                  or images, the mean over those classes but 0, the background, that occur in answer or target
/// Beside dice stand the metrics of MaskMetrics.
///   rmse, mae, r2  of answers that are numbers, learnt by MSE (number_metrics.h)
///
/// Beside them stands what the training data's most frequent class, or the mean of their targets, would get as the
/// answer to every sample: EvalResult::baseline.
class EvalMetrics {
 public:
  enum class Confusion { kNotCounted, kCounted };

  /// Throws UsageError for a confusion of what has not one label a sample, or too many classes to draw up a table.
  explicit EvalMetrics(const Task& task, Confusion confusion = Confusion::kNotCounted);

  /// Names of the metrics that the result will have.
  static std::vector<std::string> metrics_of(const Task& task);

  /// Adds a batch of samples; `loss_sum` is the sum of their losses. `output` is on any device, `target` on the CPU.
  void add(const Tensor& output, const Tensor& target, double loss_sum);
  /// The result of all ranks. A collective.
  EvalResult total(comm::Communicator& communicator) const;

 private:
  /// The most frequent class of the training data, where a sample has one label.
  std::optional<std::int64_t> common_class() const;
  void count_classes(std::span<const float> output, std::span<const std::int64_t> labels);

  const Task& task_;
  double loss_sum_ = 0;
  std::int64_t samples_ = 0;
  std::int64_t correct_ = 0;
  std::int64_t among_five_ = 0;
  std::int64_t targets_ = 0;  ///< of classes, that count
  double dice_sum_ = 0;
  std::optional<MaskMetrics> masks_;
  std::int64_t of_common_class_ = 0;
  std::optional<NumberMetrics> numbers_;
  std::vector<double> confusion_;  ///< whole numbers; empty where they are not counted
};

}  // namespace lockstep::train
