// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/table_encoding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "runtime/base/error.h"
#include "runtime/base/nearest.h"
#include "runtime/data/formats/line_reader.h"

namespace lockstep::data {

namespace {

/// The texts of blank cells, in small letters.
constexpr std::array<std::string_view, 6> kBlankCells{"", "na", "n/a", "nan", "null", "?"};

char small_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

[[noreturn]] void refuse_cell(const TableColumn& column, const std::string& why, const std::string& advice) {
  throw StorageError(fmt::format("column {}: {}", title_of(column), why), advice);
}

/// The category's place among the values; none where the training data lack it.
std::optional<std::size_t> place_of(const TableColumn& column, std::string_view word) {
  const auto found = std::ranges::lower_bound(column.values, word, std::ranges::less(),
                                              [](const std::string& value) { return std::string_view(value); });
  if (found == column.values.end() || *found != word) return std::nullopt;
  return static_cast<std::size_t>(found - column.values.begin());
}

/// Places by position: of all columns of the training files, or of the features alone.
std::vector<std::size_t> order_by_position(const TableEncoding& encoding, std::size_t cells) {
  std::vector<std::size_t> order;
  if (cells == static_cast<std::size_t>(encoding.file_columns)) {
    for (const TableColumn& column : encoding.columns) order.push_back(static_cast<std::size_t>(column.position));
    return order;
  }
  if (cells != encoding.columns.size()) {
    throw UsageError(
        fmt::format("a line has {} cells; expected the {} columns of the training data, or the {} that are "
                    "learned from",
                    cells, encoding.file_columns, encoding.columns.size()));
  }
  // The features alone, in the order in which the training files have them.
  for (const TableColumn& column : encoding.columns) {
    order.push_back(static_cast<std::size_t>(std::ranges::count_if(
        encoding.columns, [&column](const TableColumn& other) { return other.position < column.position; })));
  }
  return order;
}

}  // namespace

std::int64_t TableColumn::width() const {
  const std::int64_t blank = says_blank ? 1 : 0;
  switch (kind) {
    case Kind::kNumber:
      return 1 + blank;
    case Kind::kCategory:
      return std::ssize(values) + blank;
    case Kind::kEmbedded:
      break;
  }
  return blank;
}

std::int64_t TableColumn::vocabulary() const { return kind == Kind::kEmbedded ? std::ssize(values) + 1 : 0; }

std::int64_t TableEncoding::width() const {
  std::int64_t width = 0;
  for (const TableColumn& column : columns) width += column.width();
  return width;
}

std::vector<InputSpec> TableEncoding::more_inputs() const {
  std::vector<InputSpec> inputs;
  for (const TableColumn& column : columns) {
    if (column.vocabulary() > 0) inputs.push_back({.shape = {1}, .vocabulary = column.vocabulary()});
  }
  return inputs;
}

bool TableEncoding::is_by_name() const {
  return header && std::ranges::none_of(columns, [](const TableColumn& column) { return column.name.empty(); });
}

std::vector<std::string> TableEncoding::names() const {
  std::vector<std::string> names;
  for (const TableColumn& column : columns) names.push_back(column.name);
  return names;
}

std::string_view trimmed_cell(std::string_view cell) {
  cell.remove_prefix(std::min(cell.find_first_not_of(" \t"), cell.size()));
  return cell.substr(0, cell.find_last_not_of(" \t") + 1);
}

bool is_blank_cell(std::string_view cell) {
  cell = trimmed_cell(cell);
  return std::ranges::any_of(
      kBlankCells, [cell](std::string_view blank) { return std::ranges::equal(cell, blank, {}, small_letter); });
}

double number_of_cell(const TableColumn& column, std::string_view cell) {
  if (const std::optional<double> number = wide_number_in_text(trimmed_cell(cell))) return *number;
  refuse_cell(
      column, fmt::format("expected a number, found \"{}\"", cell),
      "Mend the cell, or leave the column out: `features` names those to learn from. `blanks: FILL` fills blank "
      "cells, and `words: ONE_HOT` takes columns of words.");
}

void require_word(const TableColumn& column, std::string_view cell) {
  if (!is_blank_cell(cell)) return;
  refuse_cell(column, fmt::format("expected a word, found a blank cell, \"{}\"", cell),
              "`blanks: FILL` fills blank cells.");
}

std::string title_of(const TableColumn& column) {
  return column.name.empty() ? std::to_string(column.position) : fmt::format("\"{}\"", column.name);
}

std::vector<std::size_t> order_in(const TableEncoding& encoding, std::span<const std::string> header) {
  if (!encoding.is_by_name()) return order_by_position(encoding, header.size());
  std::unordered_map<std::string_view, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < header.size(); ++i) places[header[i]].push_back(i);
  std::vector<std::size_t> order;
  std::vector<std::string> lacking, twice;
  for (const TableColumn& column : encoding.columns) {
    const auto found = places.find(column.name);
    if (found == places.end()) {
      lacking.push_back(title_of(column));
    } else if (found->second.size() > 1) {
      twice.push_back(title_of(column));
    } else {
      order.push_back(found->second.front());
    }
  }
  if (!lacking.empty()) {
    throw UsageError(fmt::format("the table lacks columns of the training data: {}", name_list({}, lacking)),
                     fmt::format("Its first line names {}.", name_list(lacking.front(), header)));
  }
  if (!twice.empty()) throw UsageError(fmt::format("several columns are named {}", fmt::join(twice, ", ")));
  return order;
}

EncodedRow encode(const TableEncoding& encoding, std::span<const std::string> cells, std::span<const std::size_t> order,
                  std::span<float> row, std::span<std::int64_t> tokens) {
  EncodedRow encoded;
  std::size_t at = 0;
  std::size_t token = 0;
  for (std::size_t i = 0; i < encoding.columns.size(); ++i) {
    const TableColumn& column = encoding.columns[i];
    const std::string& cell = cells[order[i]];
    const bool number = column.kind == TableColumn::Kind::kNumber;
    const bool blank = encoding.fills_blanks && is_blank_cell(cell);
    if (!blank && !number) require_word(column, cell);
    if (number) {
      double value = blank ? column.fill : number_of_cell(column, cell);
      if (column.scale) value = (value - column.scale->mean) / column.scale->std;
      row[at++] = static_cast<float>(value);
    } else if (column.kind == TableColumn::Kind::kEmbedded) {
      const auto place = blank ? std::nullopt : place_of(column, trimmed_cell(cell));
      if (!place && !blank) encoded.unknown.push_back(i);
      tokens[token++] = place ? static_cast<std::int64_t>(*place) + 1 : 0;
    } else {
      const std::string_view word = blank ? std::string_view(column.fill_word) : trimmed_cell(cell);
      std::ranges::fill(row.subspan(at, column.values.size()), 0.0f);
      if (const auto place = place_of(column, word)) {
        row[at + *place] = 1;
      } else {
        encoded.unknown.push_back(i);
      }
      at += column.values.size();
    }
    if (column.says_blank) row[at++] = blank ? 1.0f : 0.0f;
  }
  return encoded;
}

}  // namespace lockstep::data
