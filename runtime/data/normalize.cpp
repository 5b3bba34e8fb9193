// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/normalize.h"

#include "runtime/tensor/error.h"

namespace lockstep::data {

namespace {

float channel_value(const std::vector<float>& values, std::size_t channel, float missing) {
  if (values.empty()) return missing;
  return values.size() == 1 ? values[0] : values[channel];
}

}  // namespace

Normalize::Normalize(DatasetPtr base, std::vector<float> mean, std::vector<float> std) : Transform(std::move(base)) {
  const auto channels = static_cast<std::size_t>(sample_shape().rank() == 0 ? 1 : sample_shape().back());
  for (const std::vector<float>* values : {&mean, &std}) {
    if (values->size() <= 1 || values->size() == channels) continue;
    throw UsageError("data.normalize: has " + std::to_string(values->size()) + " values, but samples of shape " +
                     sample_shape().str() + " have " + std::to_string(channels) + " channels");
  }
  // A single pair of values needs no walk by channels.
  const std::size_t count = mean.size() <= 1 && std.size() <= 1 ? 1 : channels;
  for (std::size_t c = 0; c < count; ++c) {
    scale_.push_back(1.0f / channel_value(std, c, 1.0f));
    shift_.push_back(-channel_value(mean, c, 0.0f) * scale_.back());
  }
}

void Normalize::apply(const SampleKey&, std::span<float> input) const {
  const std::size_t channels = scale_.size();
  if (channels == 1) {
    const float scale = scale_[0];
    const float shift = shift_[0];
    for (float& x : input) x = x * scale + shift;
    return;
  }
  for (std::size_t i = 0; i < input.size(); i += channels) {
    for (std::size_t c = 0; c < channels; ++c) input[i + c] = input[i + c] * scale_[c] + shift_[c];
  }
}

}  // namespace lockstep::data
