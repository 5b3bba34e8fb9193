// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "runtime/data/dataset.h"
#include "runtime/data/description.h"

namespace lockstep::data {

/// Images and labels in the IDX format of MNIST, plain or gzipped: images [N, H, W] or [N, H, W, C] and labels [N] of
/// unsigned bytes. Samples are [H, W, C], C is 1 where the file has none. `classes` 0: the highest label + 1.
/// Throws StorageError that names the file and what is wrong with it.
DatasetPtr open_idx(const std::string& images, const std::string& labels, std::int64_t classes);

/// The same without reading the pixels: the headers and the labels. Finds what open_idx() would, but for damage within
/// the pixels.
Description describe_idx(const std::string& images, const std::string& labels, std::int64_t classes);

/// The highest label of a label file + 1.
std::int64_t count_idx_classes(const std::string& labels);

}  // namespace lockstep::data
