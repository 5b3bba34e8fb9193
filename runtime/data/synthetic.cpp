// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/synthetic.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "runtime/base/cores.h"
#include "runtime/base/counter_rng.h"
#include "runtime/base/option_checks.h"

namespace lockstep::data {

namespace {

// The layer word of the counter tells the tables apart. The data set is the same for every seed of a job.
constexpr std::uint64_t kDatasetSeed = 0;
constexpr std::uint32_t kPatterns = 0;
constexpr std::uint32_t kNoise = 1;
constexpr std::uint32_t kSamples = 2;
constexpr std::uint32_t kTokens = 3;

/// A sample's noise starts at one of so many places.
constexpr std::size_t kOffsets = std::size_t{1} << 16;

/// A thread is worth starting for so many numbers.
constexpr std::size_t kNumbersOfAThread = std::size_t{1} << 18;

/// Threads fill a table together, each a part of its own; they are also the first to touch its pages.
std::unique_ptr<float[]> table(std::uint32_t kind, std::size_t count, float scale) {
  const CounterRng random(kDatasetSeed, CounterRng::Purpose::kSynthetic, kind);
  auto values = std::make_unique_for_overwrite<float[]>(count);
  const auto fill = [&, out = values.get()](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i += 4) {
      const std::array<std::uint32_t, 4> words = random.block(i / 4);
      for (std::size_t k = 0; k < 4 && i + k < end; ++k) out[i + k] = scale * uniform_from_bits(words[k]);
    }
  };
  const std::size_t threads =
      std::clamp<std::size_t>(count / kNumbersOfAThread, 1, static_cast<std::size_t>(usable_cores()));
  const std::size_t part = (count / threads + 4) / 4 * 4;  // whole blocks of random numbers
  std::vector<std::jthread> others;
  for (std::size_t begin = part; begin < count; begin += part) {
    others.emplace_back(fill, begin, std::min(begin + part, count));
  }
  fill(0, std::min(part, count));
  return values;
}

Shape target_shape_of(const SyntheticOptions& options) {
  if (options.vocabulary > 0) return options.shape;
  return options.classes > 0 ? Shape{} : Shape{options.target_size};
}

}  // namespace

FieldProblems problems_of(const SyntheticOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  const auto absent = [&checks](std::int64_t value, const std::string& field, const std::string& where,
                                const std::string& other) {
    checks.check(value == 0, field, "absent where " + where, static_cast<double>(value), {other});
  };
  if (options.vocabulary > 0) {
    checks.check(options.shape.rank() <= 1, "shape", "of 1 extent where samples are tokens", options.shape.rank(),
                 {"vocabulary"});
    absent(options.classes, "classes", "samples are tokens", "vocabulary");
    absent(options.target_size, "target_size", "samples are tokens", "vocabulary");
  } else if (options.classes > 0) {
    absent(options.target_size, "target_size", "there are classes", "classes");
  } else if (options.target_size == 0) {
    checks.error("target_size", "is required: the length of a regression target (or give the number of classes)",
                 {"classes", "vocabulary"});
  }
  checks.not_negative(static_cast<double>(options.first_sample), "first_sample");
  return checks.problems();
}

Description SyntheticDataset::describe(const SyntheticOptions& options) {
  require_none(problems_of(options), "synthetic");
  return {.samples = options.samples,
          .sample_shape = options.shape,
          .vocabulary = options.vocabulary,
          .classes = options.vocabulary > 0 ? options.vocabulary : options.classes,
          .target_shape = target_shape_of(options),
          .targets_per_sample = options.vocabulary > 0 ? options.shape.numel() : 1};
}

SyntheticDataset::SyntheticDataset(const SyntheticOptions& options) : options_(options) {
  describe(options);
  if (options.vocabulary > 0) return;
  const auto numel = static_cast<std::size_t>(options.shape.numel());
  const auto patterns = static_cast<std::size_t>(std::max<std::int64_t>(options.classes, 1));
  patterns_ = table(kPatterns, patterns * numel, 0.5f);
  noise_ = table(kNoise, kOffsets + numel, 0.5f);
}

Shape SyntheticDataset::target_shape() const { return target_shape_of(options_); }

void SyntheticDataset::get_tokens(const SampleKey& key, const Sample& sample) const {
  const CounterRng random(kDatasetSeed, CounterRng::Purpose::kSynthetic, kTokens,
                          static_cast<std::uint64_t>(options_.first_sample + key.index));
  const auto vocabulary = static_cast<std::uint64_t>(options_.vocabulary);
  const auto any = [vocabulary](std::uint32_t bits) { return (bits >> 3) * vocabulary >> 29; };
  std::array<std::uint32_t, 4> words = random.block(0);
  std::uint64_t token = any(words[0]);
  for (std::size_t i = 0; i < sample.tokens.size(); ++i) {
    sample.tokens[i] = static_cast<std::int64_t>(token);
    if ((i + 1) % 4 == 0) words = random.block((i + 1) / 4);
    const std::uint32_t bits = words[(i + 1) % 4];
    token = bits % 8 == 0 ? any(bits) : (5 * token + 3) % vocabulary;
    sample.labels[i] = static_cast<std::int64_t>(token);
  }
}

void SyntheticDataset::get(const SampleKey& key, const Sample& sample) const {
  if (options_.vocabulary > 0) return get_tokens(key, sample);
  const std::span<float> input = sample.values;
  const CounterRng random(kDatasetSeed, CounterRng::Purpose::kSynthetic, kSamples);
  const auto words = random.block(static_cast<std::uint64_t>(options_.first_sample + key.index));
  const std::size_t label = options_.classes > 0 ? words[0] % static_cast<std::uint64_t>(options_.classes) : 0;
  const float* pattern = patterns_.get() + label * input.size();
  const float* noise = noise_.get() + words[1] % kOffsets;
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = pattern[i] + noise[i];
  if (options_.classes > 0) sample.labels[0] = static_cast<std::int64_t>(label);
  // Target t is the difference of elements t and t + n / 2, counted round.
  std::size_t plus = 0;
  std::size_t minus = input.size() / 2;
  for (float& value : sample.target) {
    value = input[plus] - input[minus];
    if (++plus == input.size()) plus = 0;
    if (++minus == input.size()) minus = 0;
  }
}

}  // namespace lockstep::data
