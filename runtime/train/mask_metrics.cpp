// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/mask_metrics.h"

#include <algorithm>

#include "runtime/data/dataset.h"
#include "runtime/train/prediction.h"

namespace lockstep::train {

bool MaskMetrics::fit(const Task& task) {
  const model_zoo::ModelInput& input = task.model_input();
  return task.learns_masks() || (task.classifies() && input.vocabulary == 0 && input.target_shape.rank() > 0);
}

MaskMetrics::MaskMetrics(const Task& task)
    : counts_(static_cast<std::size_t>(task.classifies() ? task.model_input().classes : 1)) {}

void MaskMetrics::add_classes(std::span<const float> output, std::span<const std::int64_t> labels) {
  const std::size_t width = labels.empty() ? 0 : output.size() / labels.size();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == data::kIgnoredLabel) continue;
    const std::int64_t answer = class_of(output.subspan(i * width, width));
    Counts& expected = counts_[static_cast<std::size_t>(labels[i])];
    ++expected.expected;
    if (answer == labels[i]) ++expected.both;
    // A model may have outputs for more classes than the data.
    if (answer >= 0 && answer < std::ssize(counts_)) ++counts_[static_cast<std::size_t>(answer)].answered;
  }
}

void MaskMetrics::add_masks(std::span<const float> output, std::span<const float> target) {
  Counts& counts = counts_.front();
  for (std::size_t i = 0; i < target.size(); ++i) {
    const bool answer = output[i] > 0;  // a logit
    const bool truth = target[i] > 0.5f;
    if (answer && truth) ++counts.both;
    if (answer) ++counts.answered;
    if (truth) ++counts.expected;
  }
}

void MaskMetrics::add_to(EvalResult& result, comm::Communicator& communicator) const {
  std::vector<double> numbers;
  for (const Counts& counts : counts_) numbers.insert(numbers.end(), {counts.both, counts.answered, counts.expected});
  const Tensor all = Tensor::from(numbers, {std::ssize(numbers)});
  communicator.all_reduce(all, comm::ReduceOp::kSum, 1.0f, Stream::calling_thread());
  const auto sums = all.as<double>();
  double dice = 0, iou = 0;
  std::int64_t occurring = 0;
  for (std::size_t c = 0; c < counts_.size(); ++c) {
    const Counts counts{sums[3 * c], sums[3 * c + 1], sums[3 * c + 2]};
    const double either = counts.answered + counts.expected - counts.both;
    ClassOverlap& overlap = result.overlaps.emplace_back();
    if (either == 0) continue;
    overlap = {
        .occurs = true, .dice = 2 * counts.both / (counts.answered + counts.expected), .iou = counts.both / either};
    dice += overlap.dice;
    iou += overlap.iou;
    ++occurring;
  }
  // Nothing that was to be found, and nothing that was answered, is all right.
  const auto mean = [occurring](double sum) { return occurring > 0 ? sum / static_cast<double>(occurring) : 1.0; };
  result.metrics.push_back({"mean_dice", mean(dice)});
  result.metrics.push_back({"mean_iou", mean(iou)});
}

}  // namespace lockstep::train
