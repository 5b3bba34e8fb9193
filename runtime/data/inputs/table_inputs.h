// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/formats/csv_reader.h"
#include "runtime/data/inputs/inputs.h"
#include "runtime/data/table_encoding.h"

namespace lockstep::data {

/// Lines of tables to predict, encoded as the training data's lines: their columns by name, in any order and beside
/// others; the target need not be there.
class TableInputs : public Inputs {
 public:
  static constexpr std::array<std::string_view, 8> kEndings{".csv",    ".tsv",    ".txt",    ".tab",
                                                            ".csv.gz", ".tsv.gz", ".txt.gz", ".tab.gz"};
  static constexpr std::string_view kRowTitle = "row";

  /// Reads all lines. What separates cells may differ from the training files where a header tells. Throws UsageError
  /// that names the columns that a lone file lacks.
  TableInputs(const TableEncoding& encoding, const std::vector<std::string>& files);
  /// The lines of a text in memory, with its header if the encoding has one. `title`: what messages and places call it.
  TableInputs(const TableEncoding& encoding, std::string text, const std::string& title);

  std::int64_t size() const override { return std::ssize(rows_); }
  Shape sample_shape() const override { return {width_}; }
  std::vector<InputSpec> more_inputs() const override { return more_inputs_; }
  InputPlace place(std::int64_t index) const override;
  std::string_view row_title() const override { return kRowTitle; }

 private:
  struct Row {
    std::size_t file;
    std::int64_t number;       ///< within the file, counted from 0
    std::string failure = {};  ///< why there are no values
  };
  void make_room(std::size_t rows);
  void add_lines(CsvReader& reader);
  void warn_of_unknown() const;
  void read(std::int64_t index, const Sample& sample) const override;

  TableEncoding encoding_;
  std::int64_t width_;
  std::vector<InputSpec> more_inputs_;
  std::vector<std::int64_t> unknown_;  ///< cells of each column whose category the training data lack
  std::vector<std::string> files_;
  std::vector<Row> rows_;
  std::vector<float> values_;         ///< [rows, width]
  std::vector<std::int64_t> tokens_;  ///< [rows, more inputs]
};

}  // namespace lockstep::data
