// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inputs/row_inputs.h"

#include <utility>

#include "runtime/base/error.h"

namespace lockstep::data {

std::int64_t RowInputs::rows_of_file() const {
  const bool has_rows = !rows_.empty() && rows_.back().file == files_.size() - 1;
  return has_rows ? rows_.back().number + 1 : 0;
}

void RowInputs::add_row(std::string failure) {
  rows_.push_back({files_.size() - 1, rows_of_file(), std::move(failure)});
}

InputPlace RowInputs::place(std::int64_t index) const {
  const Row& row = rows_[static_cast<std::size_t>(index)];
  return {files_[row.file], row.number};
}

void RowInputs::read(std::int64_t index, const Sample& sample) const {
  const Row& row = rows_[static_cast<std::size_t>(index)];
  if (!row.failure.empty()) throw StorageError(row.failure);
  read_row(index, sample);
}

}  // namespace lockstep::data
