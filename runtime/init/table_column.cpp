// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/table_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/data/formats/line_reader.h"
#include "runtime/data/table_encoding.h"

namespace lockstep::init {

namespace {

/// Of fewer lines nothing can be said: different values are no names yet.
constexpr std::int64_t kLeastLines = 20;
/// Ages of a few people may be all different, too.
constexpr std::int64_t kLeastNumbered = 50;
constexpr std::int64_t kFewClasses = 10;
constexpr std::int64_t kMostClasses = 100;
/// Numbers of lines have gaps where other lines went into another file.
constexpr double kMostSpread = 1.75;

}  // namespace

std::optional<double> number_in_cell(std::string_view cell) {
  return data::wide_number_in_text(data::trimmed_cell(cell));
}

LookedAtColumn::LookedAtColumn(const std::vector<TableRow>& rows, std::size_t first, std::size_t column) {
  for (std::size_t i = first; i < rows.size(); ++i) {
    if (column >= rows[i].size()) continue;
    const std::string& cell = rows[i][column];
    if (data::is_blank_cell(cell)) {
      ++blanks_;
      continue;
    }
    values_.emplace(data::trimmed_cell(cell));
    ++cells_;
    const std::optional<double> number = number_in_cell(cell);
    if (!number) {
      ++words_;
      continue;
    }
    whole_ = whole_ && std::floor(*number) == *number;
    const bool is_first = cells_ - words_ == 1;
    lowest_ = is_first ? *number : std::min(lowest_, *number);
    highest_ = is_first ? *number : std::max(highest_, *number);
  }
}

void LookedAtColumn::look_further(const std::string& cell) {
  if (data::is_blank_cell(cell)) {
    ++blanks_;
  } else if (late_word_.empty() && is_numbers() && !number_in_cell(cell)) {
    late_word_ = data::trimmed_cell(cell);
  }
}

bool LookedAtColumn::is_classes() const {
  if (is_words()) return true;
  // A class is written without a point: 1.0 is a measurement.
  const auto is_class = [](const std::string& value) {
    return value.size() <= 3 && value.find_first_not_of("0123456789") == std::string::npos;
  };
  if (!std::ranges::all_of(values_, is_class)) return false;
  const bool without_gap = lowest_ == 0 && highest_ == static_cast<double>(different() - 1);
  return different() <= (without_gap ? kMostClasses : kFewClasses);
}

bool LookedAtColumn::numbers_lines() const {
  return is_numbers() && whole_ && blanks_ == 0 && different() == cells_ && cells_ >= kLeastNumbered &&
         highest_ - lowest_ < kMostSpread * static_cast<double>(cells_);
}

std::string LookedAtColumn::reason_to_leave_out() const {
  if (cells_ == 0) return "all its cells are blank";
  if (different() == 1 && blanks_ == 0 && cells_ > 1) return "it has one value";
  if (numbers_lines()) return "it numbers the lines";
  if (!late_word_.empty()) return fmt::format("it has \"{}\" among numbers", late_word_);
  if (is_numbers() || cells_ < kLeastLines) return {};
  if (different() == cells_) return "its words are all different, as names are";
  if (different() > kFewWords && 2 * different() > cells_) {
    return fmt::format("it has {} different words in {} lines, as names have", different(), cells_);
  }
  return {};
}

}  // namespace lockstep::init
