// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/data/csv_options.h"
#include "runtime/data/dataset.h"
#include "runtime/data/description.h"
#include "runtime/tensor/memory_budget.h"

namespace lockstep::data {

/// The rows of tables, held in memory: a sample is the numbers of the feature columns [F], a target the class or number
/// [1] of the target column.
class CsvDataset : public Dataset {
 public:
  /// Throws FieldError for options without a meaning, and StorageError that names file, line and column of what cannot
  /// be read, or the file where rows do not fit in memory.
  explicit CsvDataset(const CsvOptions& options, MemoryBudget budget = {});

  Description describe() const;
  /// Names of the feature columns in the samples' order, of the target and of the weights; none without a header, or
  /// where a name is not that of one column.
  const std::vector<std::string>& feature_names() const { return feature_names_; }
  const std::string& target_name() const { return target_name_; }
  const std::string& weight_name() const { return weight_name_; }
  /// In the order of the classes; none where the target column has numbers.
  const std::vector<std::string>& class_names() const { return class_names_; }

  std::int64_t size() const override { return rows_; }
  Shape sample_shape() const override { return {columns_}; }
  std::int64_t classes() const override { return classes_; }
  Shape target_shape() const override { return classes_ > 0 ? Shape{} : Shape{1}; }
  bool weighted() const override { return !weights_.empty(); }
  void get(const SampleKey& key, const Sample& sample) const override;
  void add_to_digest(DataHashes& hashes) const override;

 private:
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::int64_t classes_ = 0;
  std::vector<std::string> feature_names_;
  std::string target_name_;
  std::string weight_name_;
  std::vector<std::string> class_names_;
  std::vector<float> features_;  // [rows, columns]
  std::vector<float> numbers_;   // [rows], without classes
  std::vector<std::int64_t> labels_;
  std::vector<float> weights_;  // [rows]; none without a column of them
};

/// Whether the first file's first line names such a column; not without a header. Throws as the data set does.
bool has_csv_column(const CsvOptions& options, const std::string& name);

}  // namespace lockstep::data
