// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "runtime/base/counter_rng.h"
#include "runtime/base/error.h"

namespace lockstep::data {

bool goes_on(const SamplerState& state, std::uint64_t seed) {
  return state.cursor == 0 || state.seed.value_or(seed) == seed;
}

Sampler::Sampler(const Options& options, const SamplerState& start) : options_(options), state_(start) {
  if (options_.size <= 0 || options_.size > std::int64_t{1} << 32) {
    throw UsageError("a data set of " + std::to_string(options_.size) + " samples cannot be sampled");
  }
  if (options_.global_batch <= 0) throw UsageError("data.global_batch: must be > 0");
  if (start.cursor < 0 || start.cursor >= options_.size) {
    throw UsageError(fmt::format("the data position to resume from, sample {}, lies outside the data set of {} samples",
                                 start.cursor, options_.size),
                     "Resume with the data set that the run began with.");
  }
  if (options_.shuffle && !goes_on(start, options_.seed)) {
    throw UsageError(
        fmt::format("the data position to resume from lies amid an epoch whose samples are ordered by seed "
                    "{}, this seed is {}",
                    *start.seed, options_.seed),
        fmt::format("Resume with seed {}, or begin at another epoch.", *start.seed));
  }
  state_.seed = options_.seed;
  options_.global_batch = std::min(options_.global_batch, options_.size);
  order_.resize(static_cast<std::size_t>(options_.size));
  permute();
}

std::int64_t steps_per_epoch(std::int64_t size, std::int64_t global_batch, bool drop_last) {
  const std::int64_t batch = std::min(global_batch, size);
  return (size + (drop_last ? 0 : batch - 1)) / batch;
}

std::int64_t Sampler::steps_per_epoch() const {
  return data::steps_per_epoch(options_.size, options_.global_batch, options_.drop_last);
}

StepPlan Sampler::next() {
  // The plan before may still have shown the old epoch's order, so the new one is drawn only now.
  if (order_epoch_ != state_.epoch) permute();
  const std::int64_t count = std::min(options_.global_batch, options_.size - state_.cursor);
  const std::span<const std::int64_t> samples(order_.data() + state_.cursor, static_cast<std::size_t>(count));
  const std::uint64_t epoch = state_.epoch;
  state_.cursor += count;
  const std::int64_t rest = options_.size - state_.cursor;
  if (rest == 0 || (options_.drop_last && rest < options_.global_batch)) state_ = {epoch + 1, 0, options_.seed};
  return {epoch, samples, state_};
}

void Sampler::permute() {
  order_epoch_ = state_.epoch;
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  if (!options_.shuffle) return;
  const CounterRng random(options_.seed, CounterRng::Purpose::kShuffle, 0, order_epoch_);
  std::array<std::uint32_t, 4> words{};
  // Fisher-Yates. Scaling 32 bits to i + 1 places is biased by less than (i + 1) / 2^32.
  for (std::size_t i = order_.size() - 1, drawn = 0; i > 0; --i, ++drawn) {
    if (drawn % 4 == 0) words = random.block(drawn / 4);
    std::swap(order_[i], order_[std::uint64_t{words[drawn % 4]} * (i + 1) >> 32]);
  }
}

}  // namespace lockstep::data
