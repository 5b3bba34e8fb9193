// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/answers.h"

#include <algorithm>

#include "runtime/train/prediction.h"

namespace lockstep::train {

namespace {

PredictionKind kind_of(const Task& task) {
  if (task.learns_masks()) return PredictionKind::kMask;
  if (!task.classifies()) return PredictionKind::kValues;
  return task.model_input().target_shape.rank() == 0 ? PredictionKind::kProbabilities : PredictionKind::kClasses;
}

}  // namespace

Answers::Answers(const Task& task)
    : classifies_(task.classifies()),
      kind_(kind_of(task)),
      scale_(task.target_summary().scale),
      shape_(kind_ == PredictionKind::kProbabilities ? Shape{task.model_input().outputs}
                                                     : task.model_input().target_shape),
      positions_(static_cast<std::size_t>(task.model_input().target_shape.numel())) {}

std::vector<float> Answers::numbers_of(const Tensor& output, std::size_t sample) const {
  const auto size = static_cast<std::size_t>(output.numel() / output.size(0));
  const auto of_sample = output.as<float>().subspan(sample * size, size);
  std::vector<float> numbers(of_sample.begin(), of_sample.end());
  if (kind_ == PredictionKind::kMask) sigmoid(numbers);
  if (kind_ == PredictionKind::kValues) scale_.undo(numbers);
  if (classifies_) for_each_position(std::span<float>(numbers), [](std::size_t, auto row) { softmax(row); });
  return numbers;
}

void Answers::write(std::span<const float> numbers, std::span<float> prediction) const {
  if (kind_ != PredictionKind::kClasses) {
    std::ranges::copy(numbers.first(prediction.size()), prediction.begin());
    return;
  }
  for_each_position(numbers,
                    [&](std::size_t i, auto position) { prediction[i] = static_cast<float>(class_of(position)); });
}

}  // namespace lockstep::train
