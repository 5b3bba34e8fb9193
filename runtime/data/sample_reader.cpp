// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/sample_reader.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/base/error.h"

namespace lockstep::data {

SampleReader::SampleReader(DatasetPtr dataset, const SampleErrors& errors)
    : dataset_(std::move(dataset)), errors_(errors) {
  if (errors.max_skipped >= 0) return;
  throw FieldError("data.max_skipped", fmt::format("must be >= 0, is {}", errors.max_skipped));
}

std::int64_t SampleReader::read(const SampleKey& key, const Sample& sample, std::vector<UnreadSample>& unread) const {
  try {
    dataset_->get(key, sample);
    return 0;
  } catch (const StorageError& error) {
    if (errors_.on_error == OnError::kFail) {
      throw StorageError(error.what(),
                         fmt::format("{}{}data {{ on_error: SKIP }} leaves out samples that cannot be read.",
                                     error.advice(), error.advice().empty() ? "" : " "));
    }
    unread.push_back({key.index, error.what()});
    return skip(key, sample, unread);
  }
}

std::int64_t SampleReader::skip(SampleKey key, const Sample& sample, std::vector<UnreadSample>& unread) const {
  for (std::int64_t met = 1; met <= errors_.max_skipped; ++met) {
    key.index = (key.index + 1) % dataset_->size();
    try {
      dataset_->get(key, sample);
      return 1;
    } catch (const StorageError& next) {
      unread.push_back({key.index, next.what()});
    }
  }
  write_zeros(sample);
  return errors_.max_skipped + 1;
}

}  // namespace lockstep::data
