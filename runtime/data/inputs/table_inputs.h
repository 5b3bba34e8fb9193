// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/formats/csv_reader.h"
#include "runtime/data/inputs/row_inputs.h"
#include "runtime/data/table_encoding.h"

namespace lockstep::data {

/// Lines of tables to predict, encoded as the training data's lines: their columns by name, in any order and beside
/// others; the target need not be there.
class TableInputs : public RowInputs {
 public:
  static constexpr std::array<std::string_view, 8> kEndings{".csv",    ".tsv",    ".txt",    ".tab",
                                                            ".csv.gz", ".tsv.gz", ".txt.gz", ".tab.gz"};

  /// Reads all lines. What separates cells may differ from the training files where a header tells. Throws UsageError
  /// that names the columns that a lone file lacks.
  TableInputs(const TableEncoding& encoding, const std::vector<std::string>& files);
  /// The lines of a text in memory, with its header if the encoding has one. `title`: what messages and places call it.
  TableInputs(const TableEncoding& encoding, std::string text, const std::string& title);

  Shape sample_shape() const override { return {width_}; }
  std::vector<InputSpec> more_inputs() const override { return more_inputs_; }

 private:
  /// For the values of one more row.
  void make_room();
  void add_lines(CsvReader& reader);
  void warn_of_unknown() const;
  void read_row(std::int64_t index, const Sample& sample) const override;

  TableEncoding encoding_;
  std::int64_t width_;
  std::vector<InputSpec> more_inputs_;
  std::vector<std::int64_t> unknown_;  ///< cells of each column whose category the training data lack
  std::vector<float> values_;          ///< [rows, width]
  std::vector<std::int64_t> tokens_;   ///< [rows, more inputs]
};

}  // namespace lockstep::data
