// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/dataset_kind.h"
#include "runtime/data/description.h"
#include "runtime/data/table.h"
#include "runtime/data/table_encoding.h"
#include "runtime/data/table_learning.h"
#include "runtime/tensor/memory_budget.h"

namespace lockstep::data {

/// What becomes of cells that is_blank_cell() finds among the features.
enum class BlankCells {
  kRefuse,
  kFill,  ///< with the column's median or most frequent word; a number more says that the cell was blank
};

/// What becomes of cells of words among the features.
enum class WordCells {
  kRefuse,
  kOneHot,  ///< a column that has one is of categories: a number for each
};

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
  BlankCells blanks = BlankCells::kRefuse;
  WordCells words = WordCells::kRefuse;
  std::vector<std::string> categories = {};  ///< columns of categories that are written as numbers
  /// Columns of more categories are embedded: a token each beside the sample's numbers. 0: all of them.
  std::int64_t one_hot_up_to = TableLearner::kMostOneHot;
  bool standardize = false;  ///< columns of numbers become (x - mean) / std
  /// The names of the classes, in their order. None: the classes are numbers, or with classes = 0 the names in the
  /// files, sorted. make_dataset() gives evaluation data classes and names of the training data.
  std::vector<std::string> class_names = {};
  /// How cells become numbers. None: it is learned from the files. make_dataset() gives evaluation data that of the
  /// training data, whose files it does not open where these options have it.
  std::optional<TableEncoding> encoding = {};

  static constexpr Bound kOneHot{"in [0, 1024]", 0, false, TableLearner::kMostOneHot, false};
  static constexpr std::string_view kKind = "csv";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("files", &CsvOptions::files, Names::kFile, Required{"the files, [\"train.csv\"]"}),
                      option("target", &CsvOptions::target), option("features", &CsvOptions::features),
                      option("weight", &CsvOptions::weight), option("header", &CsvOptions::header),
                      option("delimiter", &CsvOptions::delimiter), option("target_kind", &CsvOptions::target_kind),
                      option("classes", &CsvOptions::classes, kAtLeastOne, Otherwise::kFollows),
                      option("blanks", &CsvOptions::blanks), option("words", &CsvOptions::words),
                      option("categories", &CsvOptions::categories),
                      option("one_hot_up_to", &CsvOptions::one_hot_up_to, kOneHot),
                      option("standardize", &CsvOptions::standardize));
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

  /// How the cells of these files become samples: of evaluation data as the training data had it. Names of the features
  /// are empty without a header, or where a name is not that of one column, and so are those of target and weight.
  const TableEncoding& encoding() const { return encoding_; }
  void add_to_preparation(Preparation& preparation) const override;
  /// A sentence for each column with categories that the training data lack; they are encoded as zeros, or as the token
  /// 0.
  std::vector<std::string> remarks() const;

 private:
  TableEncoding encoding_;
  std::vector<std::int64_t> unknown_;  // cells of each of its columns
};

/// Whether the first file's first line names such a column; not without a header. Throws as the data set does.
bool has_csv_column(const CsvOptions& options, const std::string& name);

/// Tables, as a job asks for them.
struct CsvKind : DatasetKind<CsvKind, CsvOptions> {
  static DatasetPtr open(const Options& options) { return std::make_shared<CsvDataset>(options); }
  static Description describe(const Options& options);
  static std::vector<std::string> class_names(const Options& options);
  static void become_eval(Options& eval, const Options* train);
  static void take_preparation(Options& train, const Preparation& preparation) { train.encoding = preparation.table; }
  /// Sets nothing: evaluation data need the names of the classes, too, which become_eval() reads.
  static void set_counted_classes(Options&, std::int64_t) {}
};

}  // namespace lockstep::data

namespace lockstep {

/// The names that a job has for them.
template <>
struct EnumNames<data::BlankCells> {
  static constexpr std::array kNames{std::pair{data::BlankCells::kRefuse, std::string_view("REFUSE_BLANKS")},
                                     std::pair{data::BlankCells::kFill, std::string_view("FILL")}};
};
template <>
struct EnumNames<data::WordCells> {
  static constexpr std::array kNames{std::pair{data::WordCells::kRefuse, std::string_view("REFUSE_WORDS")},
                                     std::pair{data::WordCells::kOneHot, std::string_view("ONE_HOT")}};
};

}  // namespace lockstep
