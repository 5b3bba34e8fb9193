// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/data/table_encoding.h"

namespace lockstep::data {

/// Learns from the rows of training files how their columns become numbers: two passes over the same rows, in any
/// order. First look_at() finds which columns hold words and which hold blank cells, then add() counts what they hold.
class TableLearner {
 public:
  /// A category takes a number of each sample.
  static constexpr std::int64_t kMostOneHot = 1024;
  /// A category takes up to 50 weights of an embedding: more are names rather than categories.
  static constexpr std::int64_t kMostCategories = 100'000;

  /// The rules of a job.
  struct Rules {
    bool fill_blanks = false;
    bool one_hot = false;                      ///< columns with a word among their cells are categories
    std::int64_t one_hot_up_to = kMostOneHot;  ///< columns of more categories are embedded
    bool standardize = false;                  ///< numbers become (x - mean) / std
    bool operator==(const Rules&) const = default;
  };

  /// `columns`: the features with their names and positions; those that are categories already stay so.
  TableLearner(std::vector<TableColumn> columns, const Rules& rules);

  /// The cells of a row, in which a column lies at its position.
  void look_at(std::span<const std::string> cells);
  /// Likewise; returns the bytes of memory that what was learned takes more. Throws StorageError "column NAME: WHY"
  /// for a cell that cannot be encoded, and for a column of more words than kMostCategories.
  std::size_t add(std::span<const std::string> cells);

  /// How many were added.
  std::int64_t rows() const { return rows_; }

  /// The columns as they are encoded. A blank number is filled with the median of the column's numbers, a blank
  /// category with the most frequent word, the first in alphabetical order on ties; of an embedded column it is the
  /// token 0. Mean and std are those of the filled column, the std that of the whole (divided by n); a constant column
  /// has std 1. Throws StorageError for a column of blank cells alone.
  std::vector<TableColumn> finish();

 private:
  struct Counts {
    std::int64_t blanks = 0;
    std::vector<double> numbers;
    std::unordered_map<std::string, std::int64_t> words;
  };

  void finish_numbers(TableColumn& column, Counts& counts) const;
  void finish_words(TableColumn& column, const Counts& counts) const;

  std::vector<TableColumn> columns_;
  Rules rules_;
  std::vector<Counts> counts_;
  std::int64_t rows_ = 0;
};

}  // namespace lockstep::data
