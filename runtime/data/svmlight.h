// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/dataset_kind.h"
#include "runtime/data/table.h"
#include "runtime/tensor/memory_budget.h"

namespace lockstep::data {

/// Sparse rows as SVMlight and LIBSVM write them: "TARGET INDEX:VALUE INDEX:VALUE ...", a sample a line, with indices
/// that ascend. What follows a '#' is a comment.
struct SvmlightOptions {
  std::vector<std::string> files = {};  ///< plain or gzipped; at least one
  std::int64_t features = 0;            ///< of a sample; 0: as many as the highest index asks for
  bool zero_based = false;              ///< indices begin at 0, otherwise at 1
  TargetKind target_kind = TargetKind::kClasses;
  std::int64_t classes = 0;  ///< that the targets give by numbers from 0 on; 0: as many as there are
  /// The targets that stand for the classes, in their order. None: they are numbers of classes, or with classes = 0
  /// those in the files, sorted as texts. make_dataset() gives evaluation data those of the training data.
  std::vector<std::string> class_names = {};

  static constexpr std::string_view kKind = "svmlight";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("files", &SvmlightOptions::files, Names::kFile, Required{"the files, [\"train.svm\"]"}),
                      option("features", &SvmlightOptions::features, kAtLeastOne, Otherwise::kFollows),
                      option("zero_based", &SvmlightOptions::zero_based),
                      option("target_kind", &SvmlightOptions::target_kind),
                      option("classes", &SvmlightOptions::classes, kAtLeastOne, Otherwise::kFollows));
  }
  bool operator==(const SvmlightOptions&) const = default;
};

/// By field; what is in the files is looked at when they are opened.
FieldProblems problems_of(const SvmlightOptions& options);

/// The rows of such files, with a 0 for each feature that a line does not name.
class SvmlightDataset : public TableDataset {
 public:
  /// Throws FieldError for options without a meaning, and StorageError that names file and line of what cannot be read,
  /// or the file where rows do not fit in memory.
  explicit SvmlightDataset(const SvmlightOptions& options, MemoryBudget budget = {});
};

/// Sparse rows, as a job asks for them.
struct SvmlightKind : DatasetKind<SvmlightKind, SvmlightOptions> {
  static constexpr std::array<std::string_view, 3> kEndings{".svm", ".svmlight", ".libsvm"};
  static constexpr std::string_view kFound = "sparse rows of SVMlight";

  static DatasetPtr open(const Options& options) { return std::make_shared<SvmlightDataset>(options); }
  static Description describe(const Options& options) { return SvmlightDataset(options).describe(); }
  static std::vector<std::string> class_names(const Options& options);
  static void become_eval(Options& eval, const Options* train);
  static void take_preparation(Options& train, const Preparation& preparation);
  /// Sets nothing: evaluation data need the training data's features, too, which become_eval() reads.
  static void set_counted_classes(Options&, std::int64_t) {}
  /// Targets are classes where they are few whole numbers; indices begin at 0 where one is 0.
  static Options found(const std::vector<std::string>& files);
};

}  // namespace lockstep::data
