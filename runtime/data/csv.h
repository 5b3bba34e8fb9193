// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/dataset_kind.h"
#include "runtime/data/description.h"
#include "runtime/data/table.h"
#include "runtime/tensor/memory_budget.h"

namespace lockstep::data {

/// Tables as RFC 4180 writes them, a sample a line. A column is named by its name, or by its number, counted from 0.
struct CsvOptions {
  std::vector<std::string> files = {};     ///< with the same columns, plain or gzipped; at least one
  std::string target = {};                 ///< the column to learn; none: the last one
  std::vector<std::string> features = {};  ///< the columns to learn it from; none: all others
  std::string weight = {};                 ///< the column of what each sample's loss is multiplied by; none: 1 each
  bool header = true;                      ///< the first line of each file names the columns
  std::string delimiter = ",";             ///< one character between cells
  TargetKind target_kind = TargetKind::kClasses;
  std::int64_t classes = 0;  ///< that the target gives by numbers from 0 on; 0: as many as there are
  /// The names of the classes, in their order. None: the classes are numbers, or with classes = 0 the names in the
  /// files, sorted. make_dataset() gives evaluation data classes and names of the training data.
  std::vector<std::string> class_names = {};

  static constexpr std::string_view kKind = "csv";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("files", &CsvOptions::files, Names::kFile, Required{"the files, [\"train.csv\"]"}),
                      option("target", &CsvOptions::target), option("features", &CsvOptions::features),
                      option("weight", &CsvOptions::weight), option("header", &CsvOptions::header),
                      option("delimiter", &CsvOptions::delimiter), option("target_kind", &CsvOptions::target_kind),
                      option("classes", &CsvOptions::classes, kAtLeastOne, Otherwise::kFollows));
  }
  bool operator==(const CsvOptions&) const = default;
};

/// By field; what is in the files is looked at when they are opened.
FieldProblems problems_of(const CsvOptions& options);

/// The rows of tables: the numbers of the feature columns, and the class or number of the target column.
class CsvDataset : public TableDataset {
 public:
  /// Throws FieldError for options without a meaning, and StorageError that names file, line and column of what cannot
  /// be read, or the file where rows do not fit in memory.
  explicit CsvDataset(const CsvOptions& options, MemoryBudget budget = {});

  /// Names of the feature columns in the samples' order, of the target and of the weights; none without a header, or
  /// where a name is not that of one column.
  const std::vector<std::string>& feature_names() const { return feature_names_; }
  const std::string& target_name() const { return target_name_; }
  const std::string& weight_name() const { return weight_name_; }

 private:
  std::vector<std::string> feature_names_;
  std::string target_name_;
  std::string weight_name_;
};

/// Whether the first file's first line names such a column; not without a header. Throws as the data set does.
bool has_csv_column(const CsvOptions& options, const std::string& name);

/// Tables, as a job asks for them.
struct CsvKind : DatasetKind<CsvKind, CsvOptions> {
  static DatasetPtr open(const Options& options) { return std::make_shared<CsvDataset>(options); }
  static Description describe(const Options& options) { return CsvDataset(options).describe(); }
  static std::vector<std::string> class_names(const Options& options);
  static void become_eval(Options& eval, const Options* train);
  /// Sets nothing: evaluation data need the names of the classes, too, which become_eval() reads.
  static void set_counted_classes(Options&, std::int64_t) {}
};

}  // namespace lockstep::data
