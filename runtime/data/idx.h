// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "runtime/data/dataset.h"
#include "runtime/data/description.h"
#include "runtime/tensor/memory_budget.h"

namespace lockstep::data {

/// Images and labels in the IDX format of MNIST, plain or gzipped, of unsigned bytes.
struct IdxOptions {
  std::string images = {};   ///< file of [N, H, W] or [N, H, W, C]
  std::string labels = {};   ///< file of [N]
  std::int64_t classes = 0;  ///< 0: the highest label + 1; make_dataset() takes the training set's

  bool operator==(const IdxOptions&) const = default;
};

/// Throws FieldError, for a field within `path`, where a file is not named or `classes` is negative.
void require_sound(const IdxOptions& options, const std::string& path);

/// Samples are [H, W, C], C is 1 where the file has none. Throws StorageError that names the file and what is wrong
/// with it, or that does not fit in memory.
DatasetPtr open_idx(const IdxOptions& options, MemoryBudget budget = {});

/// The same without reading the pixels: the headers and the labels. Finds what open_idx() would, but for damage within
/// the pixels.
Description describe_idx(const IdxOptions& options);

/// The highest label of a label file + 1.
std::int64_t count_idx_classes(const std::string& labels);

}  // namespace lockstep::data
