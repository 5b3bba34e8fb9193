// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inputs/table_inputs.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

/// What separates the cells of a file: as in the training files, or else so that its first line names the columns.
char delimiter_of(const TableEncoding& encoding, const std::string& file) {
  const char trained = encoding.delimiter[0];
  for (const char delimiter : {trained, ',', '\t', ';', '|'}) {
    try {
      CsvReader reader(file, delimiter);
      std::vector<std::string> cells;
      if (!reader.next(cells)) break;
      order_in(encoding, cells);
      return delimiter;
    } catch (const UsageError&) {
    } catch (const StorageError&) {
    }
  }
  return trained;
}

}  // namespace

TableInputs::TableInputs(const TableEncoding& encoding, const std::vector<std::string>& files)
    : encoding_(encoding),
      width_(encoding.width()),
      more_inputs_(encoding.more_inputs()),
      unknown_(encoding.columns.size()) {
  for (const std::string& file : files) {
    files_.push_back(file);
    const std::size_t before = rows_.size();
    const auto fail = [&](const std::string& why) {
      rows_.push_back({files_.size() - 1, static_cast<std::int64_t>(rows_.size() - before), why});
      make_room(rows_.size());
    };
    try {
      CsvReader reader(file, delimiter_of(encoding, file));
      add_lines(reader);
      if (rows_.size() == before) fail(file + ": holds no rows");
    } catch (const UsageError& error) {
      // Beside others it is one that cannot be read.
      if (files.size() == 1) throw;
      fail(error.what());
    } catch (const StorageError& error) {
      // What follows cannot be told apart into lines.
      fail(error.what());
    }
  }
  warn_of_unknown();
}

TableInputs::TableInputs(const TableEncoding& encoding, std::string text, const std::string& title)
    : encoding_(encoding),
      width_(encoding.width()),
      more_inputs_(encoding.more_inputs()),
      unknown_(encoding.columns.size()),
      files_{title} {
  CsvReader reader(std::move(text), title, encoding.delimiter[0]);
  add_lines(reader);
  warn_of_unknown();
}

void TableInputs::make_room(std::size_t rows) {
  values_.resize(rows * static_cast<std::size_t>(width_));
  tokens_.resize(rows * more_inputs_.size());
}

void TableInputs::add_lines(CsvReader& reader) {
  std::vector<std::string> cells;
  std::vector<std::size_t> order;
  std::size_t expected = 0;
  for (std::int64_t number = 0; reader.next(cells);) {
    if (order.empty()) {
      try {
        order = order_in(encoding_, cells);
      } catch (const UsageError& error) {
        throw UsageError(fmt::format("--input {}: {}", files_.back(), error.what()), error.advice());
      }
      expected = cells.size();
      if (encoding_.header) continue;
    }
    Row row{files_.size() - 1, number++};
    make_room(rows_.size() + 1);
    const std::string place = fmt::format("{}:{}", files_.back(), reader.line());
    if (cells.size() != expected) {
      row.failure = fmt::format("{}: expected {} cells, found {}", place, expected, cells.size());
    } else {
      try {
        const std::span<float> values = std::span(values_).last(static_cast<std::size_t>(width_));
        const std::span<std::int64_t> tokens = std::span(tokens_).last(more_inputs_.size());
        for (const std::size_t column : encode(encoding_, cells, order, values, tokens).unknown) ++unknown_[column];
      } catch (const StorageError& error) {
        row.failure = fmt::format("{}: {}", place, error.what());
      }
    }
    rows_.push_back(std::move(row));
  }
}

void TableInputs::warn_of_unknown() const {
  for (std::size_t i = 0; i < unknown_.size(); ++i) {
    if (unknown_[i] == 0) continue;
    spdlog::warn(
        "column {}: {} of {} cells hold categories that the training data lack; they count as none of the "
        "known ones",
        title_of(encoding_.columns[i]), unknown_[i], rows_.size());
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
  const std::size_t tokens = more_inputs_.size();
  for (std::size_t i = 0; i < tokens; ++i) {
    sample.more_inputs[i].tokens[0] = tokens_[static_cast<std::size_t>(index) * tokens + i];
  }
}

}  // namespace lockstep::data
