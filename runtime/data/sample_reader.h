// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/batch.h"
#include "runtime/data/dataset.h"

namespace lockstep::data {

/// The ways to go on where a sample cannot be read.
enum class OnError {
  kFail,  ///< its StorageError reaches the caller
  kSkip,  ///< the next readable sample takes its place
};

struct SampleErrors {
  OnError on_error = OnError::kFail;
  /// Samples that may be skipped in a pass over the data, over all ranks. The data only count: who runs the loop ends
  /// it.
  std::int64_t max_skipped = 100;

  static constexpr auto fields() {
    return std::tuple(option("on_error", &SampleErrors::on_error),
                      option("max_skipped", &SampleErrors::max_skipped, kNotNegative));
  }
  bool operator==(const SampleErrors&) const = default;
};

/// Draws samples of a data set, and others in the place of those that cannot be read. Thread-safe.
class SampleReader {
 public:
  /// Throws FieldError for a negative max_skipped.
  SampleReader(DatasetPtr dataset, const SampleErrors& errors);

  const Dataset& dataset() const { return *dataset_; }

  /// Writes the sample that `key` names. With OnError::kSkip, one that cannot be read is replaced by the first readable
  /// one of the indices behind it, counted around the end and drawn with the same epoch and seed; those that cannot be
  /// read are added to `unread`. Returns how many were skipped: 0 or 1, and max_skipped + 1 where the search met so
  /// many that cannot be read and gave up; the sample is zeros then.
  std::int64_t read(const SampleKey& key, const Sample& sample, std::vector<UnreadSample>& unread) const;

 private:
  std::int64_t skip(SampleKey key, const Sample& sample, std::vector<UnreadSample>& unread) const;

  DatasetPtr dataset_;
  SampleErrors errors_;
};

}  // namespace lockstep::data

namespace lockstep {

/// The names that a job has for it.
template <>
struct EnumNames<data::OnError> {
  static constexpr std::array kNames{std::pair{data::OnError::kFail, std::string_view("FAIL")},
                                     std::pair{data::OnError::kSkip, std::string_view("SKIP")}};
};

}  // namespace lockstep
