// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/prediction.h"

#include <algorithm>
#include <cmath>

namespace lockstep::train {

std::int64_t class_of(std::span<const float> values) {
  std::size_t best = 0;
  for (std::size_t c = 1; c < values.size(); ++c) {
    if (values[c] > values[best]) best = c;
  }
  return std::isnan(values[best]) ? -1 : static_cast<std::int64_t>(best);
}

void softmax(std::span<float> values) {
  const auto highest = static_cast<double>(*std::ranges::max_element(values));
  double sum = 0;
  for (const float value : values) sum += std::exp(static_cast<double>(value) - highest);
  for (float& value : values) value = static_cast<float>(std::exp(static_cast<double>(value) - highest) / sum);
}

void sigmoid(std::span<float> values) {
  for (float& value : values) value = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(value))));
}

}  // namespace lockstep::train
