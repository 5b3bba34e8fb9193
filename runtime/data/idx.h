// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/dataset.h"
#include "runtime/data/dataset_kind.h"
#include "runtime/data/description.h"
#include "runtime/tensor/memory_budget.h"

namespace lockstep::data {

/// Images and labels in the IDX format of MNIST, plain or gzipped, of unsigned bytes.
struct IdxOptions {
  std::string images = {};   ///< file of [N, H, W] or [N, H, W, C]
  std::string labels = {};   ///< file of [N]
  std::int64_t classes = 0;  ///< 0: the highest label + 1; make_dataset() takes the training set's

  static constexpr std::string_view kKind = "idx";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("images", &IdxOptions::images, Names::kFile, Required{}),
                      option("labels", &IdxOptions::labels, Names::kFile, Required{}),
                      option("classes", &IdxOptions::classes, kAtLeastOne, Otherwise::kFollows));
  }
  bool operator==(const IdxOptions&) const = default;
};

/// By field; what is in the files is looked at when they are opened.
FieldProblems problems_of(const IdxOptions& options);

/// The highest label of a label file + 1.
std::int64_t count_idx_classes(const std::string& labels);

/// Images as a job asks for them. Samples are [H, W, C], C is 1 where the file has none.
struct IdxKind : DatasetKind<IdxKind, IdxOptions> {
  /// Throws StorageError that names the file and what is wrong with it, or that does not fit in memory.
  static DatasetPtr open(const Options& options, MemoryBudget budget = {});
  /// Finds what open() would, but for damage within the pixels, which it does not read.
  static Description describe(const Options& options);
  static std::int64_t count_classes(const Options& train) { return count_idx_classes(train.labels); }
};

}  // namespace lockstep::data
