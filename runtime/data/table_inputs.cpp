// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/table_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"

namespace lockstep::data {

TableInputs::TableInputs(const TableEncoding& encoding, const std::vector<std::string>& files)
    : width_(encoding.width()) {
  for (const std::string& file : files) {
    files_.push_back(file);
    try {
      CsvReader reader(file, encoding.delimiter[0]);
      add_lines(reader, encoding);
    } catch (const StorageError& error) {
      // What follows cannot be told apart into lines.
      rows_.push_back({files_.size() - 1, rows_.empty() ? 0 : rows_.back().number + 1, error.what()});
      values_.resize(rows_.size() * static_cast<std::size_t>(width_));
    }
  }
}

TableInputs::TableInputs(const TableEncoding& encoding, std::string text, const std::string& title)
    : width_(encoding.width()), files_{title} {
  CsvReader reader(std::move(text), title, encoding.delimiter[0]);
  add_lines(reader, encoding);
}

void TableInputs::add_lines(CsvReader& reader, const TableEncoding& encoding) {
  std::vector<std::string> cells;
  std::vector<std::size_t> order;
  std::size_t expected = 0;
  for (std::int64_t number = 0; reader.next(cells);) {
    if (order.empty()) {
      try {
        order = order_in(encoding, cells);
      } catch (const UsageError& error) {
        throw UsageError(fmt::format("--input {}: {}", files_.back(), error.what()), error.advice());
      }
      expected = cells.size();
      if (encoding.header) continue;
    }
    Row row{files_.size() - 1, number++};
    values_.resize(values_.size() + static_cast<std::size_t>(width_));
    const std::string place = fmt::format("{}:{}", files_.back(), reader.line());
    if (cells.size() != expected) {
      row.failure = fmt::format("{}: expected {} cells, found {}", place, expected, cells.size());
    } else {
      try {
        encode(encoding, cells, order, std::span(values_).last(static_cast<std::size_t>(width_)));
      } catch (const StorageError& error) {
        row.failure = fmt::format("{}: {}", place, error.what());
      }
    }
    rows_.push_back(std::move(row));
  }
}

InputPlace TableInputs::place(std::int64_t index) const {
  const Row& row = rows_[static_cast<std::size_t>(index)];
  return {files_[row.file], row.number};
}

void TableInputs::read(std::int64_t index, const Sample& sample) const {
  const Row& row = rows_[static_cast<std::size_t>(index)];
  if (!row.failure.empty()) throw StorageError(row.failure);
  std::copy_n(values_.begin() + index * width_, width_, sample.values.begin());
}

}  // namespace lockstep::data
