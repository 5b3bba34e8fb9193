// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/description.h"

namespace lockstep::data {

enum class CifarLabels { kCifar10, kCifar100Fine, kCifar100Coarse };

/// CIFAR's binary version, the files one after the other. Samples are [32, 32, 3]. Throws StorageError that names the
/// file and what is wrong with it.
DatasetPtr open_cifar(const std::vector<std::string>& files, CifarLabels labels);

/// The same without reading the pixels.
Description describe_cifar(const std::vector<std::string>& files, CifarLabels labels);

}  // namespace lockstep::data
