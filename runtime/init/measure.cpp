// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/data/drawn_sample.h"
#include "runtime/init/damage.h"

namespace lockstep::init {

namespace {

constexpr std::int64_t kMostSamples = 512;
constexpr std::int64_t kMostRows = 65536;
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

/// Adds up numbers of several channels. The deviations are from the first numbers, so that sums of squares keep their
/// digits.
class Moments {
 public:
  explicit Moments(std::int64_t channels)
      : shift_(static_cast<std::size_t>(channels)), sum_(shift_.size()), squares_(shift_.size()) {}

  /// Number i is of channel i, counted around.
  void add(std::span<const float> values) {
    if (count_ == 0) std::copy_n(values.begin(), std::min(shift_.size(), values.size()), shift_.begin());
    for (std::size_t k = 0; k < values.size(); ++k) {
      const std::size_t c = k % shift_.size();
      const double from_shift = static_cast<double>(values[k]) - shift_[c];
      sum_[c] += from_shift;
      squares_[c] += from_shift * from_shift;
    }
    count_ += std::ssize(values);
  }

  data::NormalizeOptions options() const {
    data::NormalizeOptions options;
    const double of_channel = static_cast<double>(count_) / static_cast<double>(shift_.size());
    for (std::size_t c = 0; c < shift_.size(); ++c) {
      const double mean = sum_[c] / of_channel;
      const double deviation = std::sqrt(std::max(0.0, squares_[c] / of_channel - mean * mean));
      options.mean.push_back(static_cast<float>(shift_[c] + mean));
      // A constant channel is not scaled; its mean is still subtracted.
      options.std.push_back(deviation > 1e-12 ? static_cast<float>(deviation) : 1.0f);
    }
    return options;
  }

 private:
  std::vector<double> shift_, sum_, squares_;
  std::int64_t count_ = 0;
};

std::int64_t channels_of(const Shape& shape) {
  const std::int64_t last = shape.rank() > 0 ? shape.back() : 1;
  return last <= kMostChannels ? last : 1;
}

/// Rows in memory cost little.
std::int64_t most_samples(const data::DatasetOptions& options) {
  const bool table =
      std::holds_alternative<data::CsvOptions>(options) || std::holds_alternative<data::SvmlightOptions>(options);
  return table ? kMostRows : kMostSamples;
}

bool standardizes(const data::DatasetOptions& options) {
  const auto* const table = std::get_if<data::CsvOptions>(&options);
  return table != nullptr && table->standardize;
}

}  // namespace

std::optional<Measured> measure(const data::DataOptions& options) {
  const data::DatasetPtr set =
      data::make_dataset({.train = options.train, .augment = options.augment}, data::Split::kTrain);
  if (set->vocabulary() > 0) return std::nullopt;
  const std::int64_t width = set->sample_shape().numel();
  const std::int64_t count = std::min({set->size(), most_samples(options.train),
                                       std::max<std::int64_t>(8, kMostValues / std::max<std::int64_t>(width, 1))});

  Moments of_samples(channels_of(set->sample_shape())), of_targets(channels_of(set->target_shape()));
  data::DrawnSample drawn(*set);
  Measured measured;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = i * set->size() / count;
    try {
      set->get({.index = index}, drawn.sample());
    } catch (const StorageError&) {
      ++measured.unread;
      continue;
    }
    for (const float value : drawn.values) {
      if (std::isfinite(value)) continue;
      throw StorageError(fmt::format("{}: sample {} holds {}", file_of(options.train), index, value),
                         "Mend the value or leave the sample out: a model learns from finite numbers alone.");
    }
    ++measured.samples;
    of_samples.add(drawn.values);
    of_targets.add(drawn.target);
  }
  if (measured.samples == 0) throw_all_damaged(options);
  if (!standardizes(options.train)) measured.normalize = of_samples.options();
  if (set->classes() == 0 && set->target_shape().rank() <= 1) measured.target = of_targets.options();
  return measured;
}

}  // namespace lockstep::init
