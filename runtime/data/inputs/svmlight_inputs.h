// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/formats/sparse_row.h"
#include "runtime/data/inputs/row_inputs.h"

namespace lockstep::data {

/// Sparse rows to predict. A target that begins a line is ignored, whatever it is; a line may begin with INDEX:VALUE
/// instead. A feature that a line does not name is 0.
class SvmlightInputs : public RowInputs {
 public:
  static constexpr std::array<std::string_view, 8> kEndings{".svm",    ".svmlight",    ".libsvm",    ".txt",
                                                            ".svm.gz", ".svmlight.gz", ".libsvm.gz", ".txt.gz"};

  /// Reads all lines of files, plain or gzipped. `features`: of a sample; a line with a higher index cannot be read.
  SvmlightInputs(const std::vector<std::string>& files, std::int64_t features, bool zero_based);

  Shape sample_shape() const override { return {features_}; }

 private:
  void add_rows(LineReader& reader);
  void read_row(std::int64_t index, const Sample& sample) const override;

  std::int64_t features_;
  std::int64_t first_;                             ///< index
  std::vector<std::vector<SparseEntry>> entries_;  ///< of each row, with indices from 0 on
};

}  // namespace lockstep::data
