// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/eval_metrics.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/train/dice.h"
#include "runtime/train/one_nan.h"
#include "runtime/train/prediction.h"

namespace lockstep::train {

namespace {

constexpr std::int64_t kFew = 5;

/// A table of more is neither read nor drawn.
constexpr std::int64_t kMostConfused = 1000;

bool has_one_label(const Task& task) { return task.classifies() && task.model_input().target_shape.rank() == 0; }

bool counts_five(const Task& task) { return has_one_label(task) && task.model_input().outputs > kFew; }

bool has_perplexity(const Task& task) {
  const bool finds_tokens = task.model_input().vocabulary > 0 && task.model_input().target_shape.rank() > 0;
  return task.classifies() && finds_tokens && task.learns_likelihood();
}

/// float32 values on the CPU.
Tensor float32_of(const Tensor& output) {
  const Tensor there = output.to(kCpu);
  const Tensor values = Tensor::empty(there.shape(), DType::kFloat32);
  kernels::cast(there, values);
  return values;
}

/// Outputs a target. A model may have more than the data has classes.
std::size_t width_of(std::span<const float> output, std::span<const std::int64_t> labels) {
  return labels.empty() ? 0 : output.size() / labels.size();
}

/// Whether fewer than five classes come before the target's; a NaN comes before all.
bool is_among_five(std::span<const float> row, std::int64_t target) {
  const float value = row[static_cast<std::size_t>(target)];
  if (std::isnan(value)) return false;
  std::int64_t before = 0;
  for (std::size_t c = 0; c < row.size(); ++c) {
    const bool first = row[c] == value && c < static_cast<std::size_t>(target);
    if (!(row[c] <= value) || first) ++before;
  }
  return before < kFew;
}

}  // namespace

EvalMetrics::EvalMetrics(const Task& task, Confusion confusion) : task_(task) {
  if (MaskMetrics::fit(task)) masks_.emplace(task);
  if (task.learns_numbers()) numbers_.emplace(task.model_input().target_shape, task.target_summary());
  if (confusion == Confusion::kNotCounted) return;
  if (!has_one_label(task)) throw UsageError("a confusion matrix needs samples of one class each");
  const std::int64_t classes = task.model_input().outputs;
  if (classes > kMostConfused) {
    throw UsageError("a confusion matrix of " + std::to_string(classes) + " classes is too large; at most " +
                     std::to_string(kMostConfused) + " are drawn up");
  }
  confusion_.resize(static_cast<std::size_t>(classes * classes));
}

std::vector<std::string> EvalMetrics::metrics_of(const Task& task) {
  std::vector<std::string> names;
  if (task.classifies()) names.emplace_back("accuracy");
  if (counts_five(task)) names.emplace_back("top5_accuracy");
  if (has_perplexity(task)) names.emplace_back("perplexity");
  if (MaskMetrics::fit(task)) names.insert(names.end(), {"dice", "mean_dice", "mean_iou"});
  if (task.learns_numbers()) names.insert(names.end(), {"rmse", "mae"});
  if (task.learns_numbers() && NumberMetrics::has_r2(task.model_input().target_shape)) names.emplace_back("r2");
  return names;
}

std::optional<std::int64_t> EvalMetrics::common_class() const {
  return has_one_label(task_) ? task_.target_summary().common_class : std::nullopt;
}

void EvalMetrics::add(const Tensor& output, const Tensor& target, double loss_sum) {
  loss_sum_ += loss_sum;
  samples_ += target.size(0);
  if (!task_.classifies() && !masks_ && !numbers_) return;
  const Tensor values = float32_of(output);
  if (masks_ && task_.classifies()) masks_->add_classes(values.as<float>(), target.as<std::int64_t>());
  if (masks_ && !task_.classifies()) masks_->add_masks(values.as<float>(), target.as<float>());
  if (numbers_) numbers_->add(values.as<float>(), target.as<float>());
  if (task_.classifies()) count_classes(values.as<float>(), target.as<std::int64_t>());
  if (!masks_) return;
  for (std::int64_t i = 0; i < target.size(0); ++i) {
    const auto row = values.rows(i, i + 1).as<float>();
    const Tensor expected = target.rows(i, i + 1);
    dice_sum_ += task_.classifies() ? mean_dice(overlap_of_classes(row, expected.as<std::int64_t>()))
                                    : overlap_of_mask(row, expected.as<float>()).dice();
  }
}

void EvalMetrics::count_classes(std::span<const float> output, std::span<const std::int64_t> labels) {
  const std::size_t width = width_of(output, labels);
  const std::int64_t classes = task_.model_input().outputs;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == data::kIgnoredLabel) continue;
    ++targets_;
    const auto row = output.subspan(i * width, width);
    const std::int64_t answer = class_of(row);
    if (answer == labels[i]) ++correct_;
    if (common_class() == labels[i]) ++of_common_class_;
    if (counts_five(task_) && is_among_five(row, labels[i])) ++among_five_;
    if (!confusion_.empty() && answer >= 0 && answer < classes) {
      ++confusion_[static_cast<std::size_t>(labels[i] * classes + answer)];
    }
  }
}

EvalResult EvalMetrics::total(comm::Communicator& communicator) const {
  std::vector<double> sums{
      loss_sum_, static_cast<double>(samples_),         static_cast<double>(correct_), static_cast<double>(among_five_),
      dice_sum_, static_cast<double>(of_common_class_), static_cast<double>(targets_)};
  const std::size_t counts = sums.size();
  if (numbers_) sums.insert(sums.end(), numbers_->sums().begin(), numbers_->sums().end());
  const auto table_begin = static_cast<std::ptrdiff_t>(sums.size());
  sums.insert(sums.end(), confusion_.begin(), confusion_.end());
  const Tensor all = Tensor::from(sums, {static_cast<std::int64_t>(sums.size())});
  communicator.all_reduce(all, comm::ReduceOp::kSum, 1.0f, Stream::calling_thread());
  const auto values = all.as<double>();

  EvalResult result;
  result.samples = static_cast<std::int64_t>(values[1]);
  result.loss = one_nan(values[0] / values[1]);
  if (task_.classifies()) result.metrics.push_back({"accuracy", values[6] > 0 ? values[2] / values[6] : 0.0});
  if (counts_five(task_)) result.metrics.push_back({"top5_accuracy", values[3] / values[1]});
  if (has_perplexity(task_)) result.metrics.push_back({"perplexity", std::exp(result.loss), false});
  if (masks_) {
    result.metrics.push_back({"dice", values[4] / values[1]});
    masks_->add_to(result, communicator);
  }
  if (common_class()) result.baseline.push_back({"accuracy", values[5] / values[1]});
  if (numbers_) numbers_->append_to(result, values.subspan(counts, numbers_->sums().size()), values[1]);
  if (confusion_.empty()) return result;
  ConfusionMatrix& confusion = result.confusion.emplace();
  confusion.classes = task_.model_input().outputs;
  const std::span<const double> table(values.begin() + table_begin, values.end());
  for (const double count : table) confusion.counts.push_back(static_cast<std::int64_t>(count));
  return result;
}

}  // namespace lockstep::train
