// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/init/damage.h"

namespace lockstep::init {

namespace {

constexpr std::int64_t kMostSamples = 512;
constexpr std::int64_t kMostValues = std::int64_t{1} << 26;
constexpr std::int64_t kMostChannels = 64;

/// The file to name for values that are not finite. Only arrays can hold such values; readers of other data refuse
/// them.
std::string file_of(const data::DatasetOptions& options) {
  const auto* arrays = std::get_if<data::ArraysOptions>(&options);
  return arrays != nullptr ? arrays->features : "the training data";
}

[[noreturn]] void throw_all_damaged(const data::DataOptions& options) {
  const Damage damage = look_for_damage(options, data::Split::kTrain);
  throw StorageError(fmt::format("no training sample can be read:\n{}", fmt::join(damage.sentences, "\n")),
                     "Fetch the files again.");
}

}  // namespace

std::optional<Measured> measure(const data::DataOptions& options) {
  const data::DatasetPtr set =
      data::make_dataset({.train = options.train, .augment = options.augment}, data::Split::kTrain);
  if (set->vocabulary() > 0) return std::nullopt;
  const std::int64_t width = set->sample_shape().numel();
  const std::int64_t last = set->sample_shape().rank() > 0 ? set->sample_shape().back() : 1;
  const std::int64_t channels = last <= kMostChannels ? last : 1;
  const std::int64_t count =
      std::min({set->size(), kMostSamples, std::max<std::int64_t>(8, kMostValues / std::max<std::int64_t>(width, 1))});

  // The deviations are from the first sample's values, so that sums of squares keep their digits.
  std::vector<double> shift(static_cast<std::size_t>(channels)), sum(shift.size()), squares(shift.size());
  std::vector<float> values(static_cast<std::size_t>(width));
  std::vector<float> target(static_cast<std::size_t>(set->target_shape().numel()));
  std::vector<std::int64_t> labels(target.size());
  Measured measured;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = i * set->size() / count;
    try {
      set->get({.index = index}, {.values = values,
                                  .target = set->classes() > 0 ? std::span<float>() : std::span(target),
                                  .labels = set->classes() > 0 ? std::span(labels) : std::span<std::int64_t>()});
    } catch (const StorageError&) {
      ++measured.unread;
      continue;
    }
    for (const float value : values) {
      if (std::isfinite(value)) continue;
      throw StorageError(fmt::format("{}: sample {} holds {}", file_of(options.train), index, value),
                         "Mend the value or leave the sample out: a model learns from finite numbers alone.");
    }
    if (measured.samples++ == 0)
      std::copy_n(values.begin(), std::min<std::size_t>(shift.size(), values.size()), shift.begin());
    for (std::size_t k = 0; k < values.size(); ++k) {
      const std::size_t c = k % shift.size();
      const double from_shift = static_cast<double>(values[k]) - shift[c];
      sum[c] += from_shift;
      squares[c] += from_shift * from_shift;
    }
  }
  if (measured.samples == 0) throw_all_damaged(options);
  const double of_channel = static_cast<double>(measured.samples * width) / static_cast<double>(channels);
  for (std::size_t c = 0; c < shift.size(); ++c) {
    const double mean = sum[c] / of_channel;
    const double deviation = std::sqrt(std::max(0.0, squares[c] / of_channel - mean * mean));
    measured.normalize.mean.push_back(static_cast<float>(shift[c] + mean));
    // A constant channel is not scaled; its mean is still subtracted.
    measured.normalize.std.push_back(deviation > 1e-12 ? static_cast<float>(deviation) : 1.0f);
  }
  return measured;
}

}  // namespace lockstep::init
