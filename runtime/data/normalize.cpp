// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/normalize.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/option_checks.h"

namespace lockstep::data {

namespace {

constexpr std::size_t kRepeats = 16;

std::size_t channels_of(const Shape& sample) {
  return static_cast<std::size_t>(sample.rank() == 0 ? 1 : sample.back());
}

float channel_value(const std::vector<float>& values, std::size_t channel, float missing) {
  if (values.empty()) return missing;
  return values.size() == 1 ? values[0] : values[channel];
}

void require_one_or_a_channel(const std::vector<float>& values, const std::string& path, const Shape& sample) {
  const std::size_t channels = channels_of(sample);
  if (values.size() <= 1 || values.size() == channels) return;
  throw FieldError(path, fmt::format("has {} values, but samples of shape {} have {} channel{}", values.size(),
                                     sample.str(), channels, channels == 1 ? "" : "s"));
}

}  // namespace

void require_normalize(const NormalizeOptions& options, const Description& data) {
  const Shape& sample = data.sample_shape;
  if (data.vocabulary > 0 && options != NormalizeOptions()) {
    throw FieldError("data.normalize", "needs samples of numbers, but they are tokens");
  }
  require_none(problems_in_fields(options), "data.normalize");
  require_one_or_a_channel(options.mean, "data.normalize.mean", sample);
  require_one_or_a_channel(options.std, "data.normalize.std", sample);
}

Normalize::Normalize(DatasetPtr base, const NormalizeOptions& options) : Transform(std::move(base)) {
  require_normalize(options, describe(*this));
  const auto& [mean, std] = options;
  const std::size_t channels = channels_of(sample_shape());
  // A single pair of values needs no walk by channels.
  const bool one = mean.size() <= 1 && std.size() <= 1;
  const std::size_t count = one ? 1 : channels * kRepeats;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t c = i % channels;
    scale_.push_back(1.0f / channel_value(std, c, 1.0f));
    shift_.push_back(-channel_value(mean, c, 0.0f) * scale_.back());
  }
}

void Normalize::apply(const SampleKey&, const Sample& sample) const {
  const std::span<float> input = sample.values;
  const std::size_t block = scale_.size();
  if (block == 1) {
    const float scale = scale_[0];
    const float shift = shift_[0];
    for (float& x : input) x = x * scale + shift;
    return;
  }
  const float* const scale = scale_.data();
  const float* const shift = shift_.data();
  for (std::size_t i = 0; i < input.size(); i += block) {
    float* const x = input.data() + i;
    const std::size_t count = std::min(block, input.size() - i);
    for (std::size_t k = 0; k < count; ++k) x[k] = x[k] * scale[k] + shift[k];
  }
}

}  // namespace lockstep::data
