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
  for (const std::string& each : files) {
    begin_file(each);
    const auto fail = [&](const std::string& why) {
      make_room();
      add_row(why);
    };
    try {
      CsvReader reader(each, delimiter_of(encoding, each));
      add_lines(reader);
      if (rows_of_file() == 0) fail(each + ": holds no rows");
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
      unknown_(encoding.columns.size()) {
  begin_file(title);
  CsvReader reader(std::move(text), title, encoding.delimiter[0]);
  add_lines(reader);
  warn_of_unknown();
}

void TableInputs::make_room() {
  values_.resize(values_.size() + static_cast<std::size_t>(width_));
  tokens_.resize(tokens_.size() + more_inputs_.size());
}

void TableInputs::add_lines(CsvReader& reader) {
  std::vector<std::string> cells;
  std::vector<std::size_t> order;
  std::size_t expected = 0;
  while (reader.next(cells)) {
    if (order.empty()) {
      try {
        order = order_in(encoding_, cells);
      } catch (const UsageError& error) {
        throw UsageError(fmt::format("--input {}: {}", file(), error.what()), error.advice());
      }
      expected = cells.size();
      if (encoding_.header) continue;
    }
    make_room();
    std::string failure;
    const std::string place = fmt::format("{}:{}", file(), reader.line());
    if (cells.size() != expected) {
      failure = fmt::format("{}: expected {} cells, found {}", place, expected, cells.size());
    } else {
      try {
        const std::span<float> values = std::span(values_).last(static_cast<std::size_t>(width_));
        const std::span<std::int64_t> tokens = std::span(tokens_).last(more_inputs_.size());
        for (const std::size_t column : encode(encoding_, cells, order, values, tokens).unknown) ++unknown_[column];
      } catch (const StorageError& error) {
        failure = fmt::format("{}: {}", place, error.what());
      }
    }
    add_row(std::move(failure));
  }
}

void TableInputs::warn_of_unknown() const {
  for (std::size_t i = 0; i < unknown_.size(); ++i) {
    if (unknown_[i] == 0) continue;
    spdlog::warn(
        "column {}: {} of {} cells hold categories that the training data lack; they count as none of the "
        "known ones",
        title_of(encoding_.columns[i]), unknown_[i], size());
  }
}

void TableInputs::read_row(std::int64_t index, const Sample& sample) const {
  std::copy_n(values_.begin() + index * width_, width_, sample.values.begin());
  const std::size_t tokens = more_inputs_.size();
  for (std::size_t i = 0; i < tokens; ++i) {
    sample.more_inputs[i].tokens[0] = tokens_[static_cast<std::size_t>(index) * tokens + i];
  }
}

}  // namespace lockstep::data
