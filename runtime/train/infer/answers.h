// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/tensor/shape.h"
#include "runtime/tensor/tensor.h"
#include "runtime/train/infer/prediction_text.h"
#include "runtime/train/task.h"

namespace lockstep::train {

/// Makes predictions of what a model gives for samples.
class Answers {
 public:
  explicit Answers(const Task& task);

  PredictionKind kind() const { return kind_; }
  /// The shape of a sample's prediction: [classes] for kProbabilities, else the shape of the sample's target.
  const Shape& shape() const { return shape_; }

  /// The model's output for a sample, of float32 [n, ...] on the CPU: the probabilities of the classes, position after
  /// position, the probabilities of a mask, or values.
  std::vector<float> numbers_of(const Tensor& output, std::size_t sample) const;
  /// The prediction that these numbers are: shape().numel() of them.
  void write(std::span<const float> numbers, std::span<float> prediction) const;

  /// Calls `visit` with the number of each position of a sample and what is said of its classes.
  template <class T, class Visit>
  void for_each_position(std::span<T> numbers, const Visit& visit) const {
    // A model may have more outputs than the data has classes.
    const std::size_t width = numbers.size() / positions_;
    for (std::size_t i = 0; i < positions_; ++i) visit(i, numbers.subspan(i * width, width));
  }

 private:
  bool classifies_;
  PredictionKind kind_;
  data::TargetScale scale_;
  Shape shape_;
  std::size_t positions_;
};

}  // namespace lockstep::train
