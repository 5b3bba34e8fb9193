// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/sample_reader.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "runtime/tensor/error.h"

namespace lockstep::data {

SampleReader::SampleReader(DatasetPtr dataset, const SampleErrors& errors)
    : dataset_(std::move(dataset)), errors_(errors) {
  if (errors.max_skipped >= 0) return;
  throw FieldError("data.max_skipped", fmt::format("must be >= 0, is {}", errors.max_skipped));
}

std::int64_t SampleReader::read(const SampleKey& key, const Sample& sample) const {
  if (errors_.on_error == OnError::kFail) {
    dataset_->get(key, sample);
    return 0;
  }
  try {
    dataset_->get(key, sample);
    return 0;
  } catch (const StorageError& error) {
    return skip(key, sample, error.what());
  }
}

std::int64_t SampleReader::skip(SampleKey key, const Sample& sample, const char* error) const {
  say_once(key.index, error);
  for (std::int64_t met = 1; met <= errors_.max_skipped; ++met) {
    key.index = (key.index + 1) % dataset_->size();
    try {
      dataset_->get(key, sample);
      return 1;
    } catch (const StorageError& next) {
      say_once(key.index, next.what());
    }
  }
  for (const std::span<float> numbers : {sample.values, sample.target, sample.weight, sample.other_weight}) {
    std::ranges::fill(numbers, 0.0f);
  }
  for (const std::span<std::int64_t> numbers : {sample.tokens, sample.labels, sample.other_label}) {
    std::ranges::fill(numbers, 0);
  }
  return errors_.max_skipped + 1;
}

void SampleReader::say_once(std::int64_t index, const char* error) const {
  const std::lock_guard lock(mutex_);
  if (said_.insert(index).second) spdlog::warn("sample {} is skipped: {}", index, error);
}

}  // namespace lockstep::data
