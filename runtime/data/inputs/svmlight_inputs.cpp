// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inputs/svmlight_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/base/error.h"

namespace lockstep::data {

SvmlightInputs::SvmlightInputs(const std::vector<std::string>& files, std::int64_t features, bool zero_based)
    : features_(features), first_(zero_based ? 0 : 1) {
  for (const std::string& each : files) {
    begin_file(each);
    const auto fail = [&](const std::string& why) {
      add_row(why);
      entries_.emplace_back();
    };
    try {
      LineReader reader(each);
      add_rows(reader);
      if (rows_of_file() == 0) fail(each + ": holds no rows");
    } catch (const StorageError& error) {
      // What follows cannot be told apart into lines.
      fail(error.what());
    }
  }
}

void SvmlightInputs::add_rows(LineReader& reader) {
  SparseRow found;
  while (const std::optional<std::string_view> line = reader.next()) {
    std::string failure;
    std::vector<SparseEntry> entries;
    try {
      if (!read_sparse_row(*line, reader, found)) continue;
      for (SparseEntry& entry : found.entries) {
        entry.index -= first_;
        if (entry.index >= 0 && entry.index < features_) continue;
        reader.refuse(fmt::format("index {}: the model's {} features have the indices {} to {}", entry.index + first_,
                                  features_, first_, features_ - 1 + first_));
      }
      entries = std::move(found.entries);
    } catch (const StorageError& error) {
      failure = error.what();
    }
    add_row(std::move(failure));
    entries_.push_back(std::move(entries));
  }
}

void SvmlightInputs::read_row(std::int64_t index, const Sample& sample) const {
  std::ranges::fill(sample.values, 0.0f);
  for (const SparseEntry& entry : entries_[static_cast<std::size_t>(index)]) {
    sample.values[static_cast<std::size_t>(entry.index)] = entry.value;
  }
}

}  // namespace lockstep::data
