// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

/// A number that tells how good a model is.
struct Metric {
  std::string name;  ///< "accuracy"
  double value = 0.0;
  bool is_share = true;  ///< of what could be right: between 0 and 1
};

/// How often targets of each class were taken for each.
struct ConfusionMatrix {
  std::int64_t classes = 0;
  std::vector<std::int64_t> counts;  ///< [target * classes + answer]

  std::int64_t count(std::int64_t target, std::int64_t answer) const {
    return counts[static_cast<std::size_t>(target * classes + answer)];
  }
};

/// How answers and targets of a class overlap: MaskMetrics.
struct ClassOverlap {
  bool occurs = false;  ///< in an answer or a target
  double dice = 0.0;
  double iou = 0.0;
};

/// The samples from `begin` to `end` - 1.
struct SampleRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The result of an evaluation.
struct EvalResult {
  std::int64_t samples = 0;
  double loss = 0.0;
  std::vector<Metric> metrics = {};  ///< those of the task, in its order
  /// Those of `metrics` that are known of a guess that looks at no sample: the most frequent class of the training
  /// data, or the mean of their targets.
  std::vector<Metric> baseline = {};
  std::optional<ConfusionMatrix> confusion = {};
  std::vector<ClassOverlap> overlaps = {};  ///< of each class, of masks
  bool of_mean = false;                     ///< what was evaluated is the running mean of the weights
  /// Samples that could not be read, so that others took their place; nothing where such a sample ends the run.
  std::optional<std::uint64_t> skipped_samples = {};
  std::string checkpoint = {};                ///< what was evaluated, on rank 0; empty within a training run
  std::optional<SampleRange> bad_batch = {};  ///< the first batch whose loss is inf or NaN, on any rank
};

/// Throws NumericsError where the loss is inf or NaN: such weights are neither good nor bad. `where`: "at step 20".
void require_finite(const EvalResult& result, const std::string& where);

/// The value of "eval.loss" or "eval.accuracy"; none where the result has no such number.
std::optional<double> value_of(const EvalResult& result, const std::string& name);
/// Whether a lower value of it is the better one: of losses, perplexity, and distances from the targets.
bool is_better_lower(const std::string& name);

/// "98.99 %", "3.4821"
std::string text_of(const Metric& metric);
/// The same, and the baseline where the result has one: "98.99 % (baseline 61.62 %)".
std::string text_beside_baseline(const EvalResult& result, const Metric& metric);

}  // namespace lockstep::train
