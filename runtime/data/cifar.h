// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/description.h"

namespace lockstep::data {

enum class CifarLabels {
  kCifar10,         ///< 1 label byte a record
  kCifar100Fine,    ///< a coarse and a fine label byte; the fine one is used
  kCifar100Coarse,  ///< the same records; the coarse one is used
};

struct CifarOptions {
  std::vector<std::string> files = {};  ///< of the binary version, taken one after the other; at least one
  CifarLabels labels = CifarLabels::kCifar10;

  bool operator==(const CifarOptions&) const = default;
};

/// Throws FieldError, for a field within `path`, where no file is named.
void require_sound(const CifarOptions& options, const std::string& path);

/// Samples are [32, 32, 3]. Throws StorageError that names the file and what is wrong with it.
DatasetPtr open_cifar(const CifarOptions& options);

/// The same without reading the pixels.
Description describe_cifar(const CifarOptions& options);

}  // namespace lockstep::data
