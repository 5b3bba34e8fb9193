// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace lockstep::init {

/// The cells of a line of a table.
using TableRow = std::vector<std::string>;

/// Up to so many words are categories however often each comes, and of so many each is a number.
constexpr std::int64_t kFewWords = 16;

/// The number that a cell holds, spaces around it left out.
std::optional<double> number_in_cell(std::string_view cell);

/// The cells of one column of the lines that are looked at, without the header's.
class LookedAtColumn {
 public:
  /// The column's cells of `rows` from row `first` on; rows that are too short are passed over.
  LookedAtColumn(const std::vector<TableRow>& rows, std::size_t first, std::size_t column);

  /// One more cell, far behind in a long table: only whether it is blank, or the first word of a column of numbers.
  void look_further(const std::string& cell);

  std::int64_t blanks() const { return blanks_; }
  std::int64_t different() const { return static_cast<std::int64_t>(values_.size()); }
  /// All cells but the blank ones.
  bool is_numbers() const { return words_ == 0 && cells_ > 0; }
  bool is_words() const { return words_ > 0; }
  /// What a target is: classes are words or few whole numbers. Up to 10 different ones are few, or up to 100 that are
  /// 0, 1, 2 and so on without a gap.
  bool is_classes() const;
  /// Says why the column tells a model nothing, or only which line it is; empty where it may be learned from.
  std::string reason_to_leave_out() const;
  /// Whether all its numbers are whole, different and close together, in whatever order, as those of lines are.
  bool numbers_lines() const;

 private:
  std::unordered_set<std::string> values_;  // of the cells that are not blank, the different ones
  std::int64_t cells_ = 0;                  // that are not blank
  std::int64_t blanks_ = 0;
  std::int64_t words_ = 0;
  std::string late_word_;  // that look_further() found among numbers
  bool whole_ = true;      // all numbers are whole
  double lowest_ = 0;
  double highest_ = 0;
};

}  // namespace lockstep::init
