// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/normalize.h"

#include "runtime/tensor/error.h"

namespace lockstep::data {

namespace {

std::size_t channels_of(const Shape& sample) {
  return static_cast<std::size_t>(sample.rank() == 0 ? 1 : sample.back());
}

float channel_value(const std::vector<float>& values, std::size_t channel, float missing) {
  if (values.empty()) return missing;
  return values.size() == 1 ? values[0] : values[channel];
}

}  // namespace

void Normalize::require_fit(const Shape& sample, std::size_t means, std::size_t stds) {
  const std::size_t channels = channels_of(sample);
  const auto require = [&](const char* path, std::size_t values) {
    if (values <= 1 || values == channels) return;
    throw FieldError(path, "has " + std::to_string(values) + " values, but samples of shape " + sample.str() +
                               " have " + std::to_string(channels) + (channels == 1 ? " channel" : " channels"));
  };
  require("data.normalize.mean", means);
  require("data.normalize.std", stds);
}

Normalize::Normalize(DatasetPtr base, std::vector<float> mean, std::vector<float> std) : Transform(std::move(base)) {
  require_fit(sample_shape(), mean.size(), std.size());
  const std::size_t channels = channels_of(sample_shape());
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
