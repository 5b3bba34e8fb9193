// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/inputs/inputs.h"

namespace lockstep::data {

/// Samples to predict of which a file holds several, a row each. A row that cannot be read is a sample, too: reading it
/// throws StorageError.
class RowInputs : public Inputs {
 public:
  static constexpr std::string_view kRowTitle = "row";

  std::int64_t size() const final { return std::ssize(rows_); }
  InputPlace place(std::int64_t index) const final;
  std::string_view row_title() const final { return kRowTitle; }

 protected:
  /// The rows that are added from now on are those of this file.
  void begin_file(std::string path) { files_.push_back(std::move(path)); }
  const std::string& file() const { return files_.back(); }
  /// `failure`: why the row cannot be read; empty where it can.
  void add_row(std::string failure = {});
  /// How many the file has so far.
  std::int64_t rows_of_file() const;

 private:
  struct Row {
    std::size_t file;
    std::int64_t number;  ///< within the file, counted from 0
    std::string failure;
  };

  void read(std::int64_t index, const Sample& sample) const final;
  /// Writes the input of a row that can be read.
  virtual void read_row(std::int64_t index, const Sample& sample) const = 0;

  std::vector<std::string> files_;
  std::vector<Row> rows_;
};

}  // namespace lockstep::data
