// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/formats/sparse_row.h"
#include "runtime/data/inputs/inputs.h"

namespace lockstep::data {

/// Sparse rows to predict. A target that begins a line is ignored, whatever it is; a line may begin with INDEX:VALUE
/// instead. A feature that a line does not name is 0.
class SvmlightInputs : public Inputs {
 public:
  static constexpr std::array<std::string_view, 8> kEndings{".svm",    ".svmlight",    ".libsvm",    ".txt",
                                                            ".svm.gz", ".svmlight.gz", ".libsvm.gz", ".txt.gz"};
  static constexpr std::string_view kRowTitle = "row";

  /// Reads all lines of files, plain or gzipped. `features`: of a sample; a line with a higher index cannot be read.
  SvmlightInputs(const std::vector<std::string>& files, std::int64_t features, bool zero_based);

  std::int64_t size() const override { return std::ssize(rows_); }
  Shape sample_shape() const override { return {features_}; }
  InputPlace place(std::int64_t index) const override;
  std::string_view row_title() const override { return kRowTitle; }

 private:
  struct Row {
    std::size_t file;
    std::int64_t number;                    ///< within the file, counted from 0
    std::vector<SparseEntry> entries = {};  ///< with indices from 0 on
    std::string failure = {};               ///< why there are none
  };
  void add_rows(std::size_t file, LineReader& reader);
  void read(std::int64_t index, const Sample& sample) const override;

  std::int64_t features_;
  std::int64_t first_;  ///< index
  std::vector<std::string> files_;
  std::vector<Row> rows_;
};

}  // namespace lockstep::data
