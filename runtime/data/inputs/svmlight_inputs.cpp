// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inputs/svmlight_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/base/error.h"

namespace lockstep::data {

SvmlightInputs::SvmlightInputs(const std::vector<std::string>& files, std::int64_t features, bool zero_based)
    : features_(features), first_(zero_based ? 0 : 1), files_(files) {
  for (std::size_t file = 0; file < files_.size(); ++file) {
    const std::size_t before = rows_.size();
    const auto fail = [&](const std::string& why) {
      rows_.push_back({.file = file, .number = static_cast<std::int64_t>(rows_.size() - before), .failure = why});
    };
    try {
      LineReader reader(files_[file]);
      add_rows(file, reader);
      if (rows_.size() == before) fail(files_[file] + ": holds no rows");
    } catch (const StorageError& error) {
      // What follows cannot be told apart into lines.
      fail(error.what());
    }
  }
}

void SvmlightInputs::add_rows(std::size_t file, LineReader& reader) {
  SparseRow found;
  for (std::int64_t number = 0; const std::optional<std::string_view> line = reader.next();) {
    Row row{.file = file, .number = number};
    try {
      if (!read_sparse_row(*line, reader, found)) continue;
      for (SparseEntry& entry : found.entries) {
        entry.index -= first_;
        if (entry.index >= 0 && entry.index < features_) continue;
        reader.refuse(fmt::format("index {}: the model's {} features have the indices {} to {}", entry.index + first_,
                                  features_, first_, features_ - 1 + first_));
      }
      row.entries = std::move(found.entries);
    } catch (const StorageError& error) {
      row.failure = error.what();
    }
    rows_.push_back(std::move(row));
    ++number;
  }
}

InputPlace SvmlightInputs::place(std::int64_t index) const {
  const Row& row = rows_[static_cast<std::size_t>(index)];
  return {files_[row.file], row.number};
}

void SvmlightInputs::read(std::int64_t index, const Sample& sample) const {
  const Row& row = rows_[static_cast<std::size_t>(index)];
  if (!row.failure.empty()) throw StorageError(row.failure);
  std::ranges::fill(sample.values, 0.0f);
  for (const SparseEntry& entry : row.entries) sample.values[static_cast<std::size_t>(entry.index)] = entry.value;
}

}  // namespace lockstep::data
