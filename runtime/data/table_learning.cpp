// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/table_learning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/data/formats/line_reader.h"

namespace lockstep::data {

namespace {

/// Of an even count the mean of the two in the middle. Changes the order of the numbers.
double median_of(std::vector<double>& numbers) {
  const auto middle = numbers.begin() + std::ssize(numbers) / 2;
  std::ranges::nth_element(numbers, middle);
  if (numbers.size() % 2 == 1) return *middle;
  return (*std::max_element(numbers.begin(), middle) + *middle) / 2;
}

/// Of the numbers and of `blanks` cells that hold `fill`.
TableColumn::Scale scale_of(const std::vector<double>& numbers, std::int64_t blanks, double fill) {
  const auto filled = static_cast<double>(blanks);
  const double count = static_cast<double>(numbers.size()) + filled;
  double sum = filled * fill;
  for (const double number : numbers) sum += number;
  const double mean = sum / count;
  double squares = filled * (fill - mean) * (fill - mean);
  for (const double number : numbers) squares += (number - mean) * (number - mean);
  const double std = std::sqrt(squares / count);
  // What rounding leaves of a constant column is no deviation.
  return {.mean = mean, .std = std > 1e-12 * std::abs(mean) ? std : 1.0};
}

}  // namespace

TableLearner::TableLearner(std::vector<TableColumn> columns, const Rules& rules)
    : columns_(std::move(columns)), rules_(rules), counts_(columns_.size()) {}

void TableLearner::look_at(std::span<const std::string> cells) {
  for (TableColumn& column : columns_) {
    const std::string& cell = cells[static_cast<std::size_t>(column.position)];
    if (is_blank_cell(cell)) {
      column.says_blank = column.says_blank || rules_.fill_blanks;
    } else if (rules_.one_hot && !number_in_text(trimmed_cell(cell))) {
      column.kind = TableColumn::Kind::kCategory;
    }
  }
}

std::size_t TableLearner::add(std::span<const std::string> cells) {
  ++rows_;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const TableColumn& column = columns_[i];
    Counts& counts = counts_[i];
    const std::string_view cell = trimmed_cell(cells[static_cast<std::size_t>(column.position)]);
    if (rules_.fill_blanks && is_blank_cell(cell)) {
      ++counts.blanks;
    } else if (column.kind == TableColumn::Kind::kNumber) {
      counts.numbers.push_back(number_of_cell(column, cell));
      bytes += sizeof(double);
    } else {
      require_word(column, cell);
      const auto [found, is_new] = counts.words.try_emplace(std::string(cell), 0);
      ++found->second;
      if (is_new) bytes += sizeof *found + cell.size();
      if (std::ssize(counts.words) > kMostCategories) {
        throw StorageError(
            fmt::format("column {}: holds more than {} different words", title_of(column), kMostCategories),
            "Name the columns to learn from in `features` and leave this one out, or write fewer "
            "categories.");
      }
    }
  }
  return bytes;
}

void TableLearner::finish_numbers(TableColumn& column, Counts& counts) const {
  if (rules_.fill_blanks) column.fill = median_of(counts.numbers);
  if (rules_.standardize) column.scale = scale_of(counts.numbers, counts.blanks, column.fill);
}

void TableLearner::finish_words(TableColumn& column, const Counts& counts) const {
  for (const auto& [word, count] : counts.words) column.values.push_back(word);
  std::ranges::sort(column.values);
  if (std::ssize(column.values) > rules_.one_hot_up_to) {
    column.kind = TableColumn::Kind::kEmbedded;
    column.says_blank = false;
    return;
  }
  if (!rules_.fill_blanks) return;
  column.fill_word = *std::ranges::max_element(column.values, {},
                                               [&counts](const std::string& word) { return counts.words.at(word); });
}

std::vector<TableColumn> TableLearner::finish() {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    TableColumn& column = columns_[i];
    Counts& counts = counts_[i];
    if (counts.numbers.empty() && counts.words.empty()) {
      throw StorageError(fmt::format("column {}: all its cells are blank", title_of(column)),
                         "Name the columns to learn from in `features`, and leave this one out.");
    }
    column.kind == TableColumn::Kind::kNumber ? finish_numbers(column, counts) : finish_words(column, counts);
    counts = {};
  }
  return std::move(columns_);
}

}  // namespace lockstep::data
