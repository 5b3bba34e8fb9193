// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/data/formats/range.h"
#include "runtime/tensor/shape.h"

namespace lockstep::data {

/// Whether the name is that of a volume: *.nii, *.nii.gz or *.npy.
bool is_volume_file(const std::string& name);

/// [D, H, W, C], known from the header; C is 1 for a file of three dimensions. Throws StorageError for a file that
/// holds no volume, and for more than `max_voxels` numbers.
Shape volume_shape(const std::string& path, std::int64_t max_voxels);

/// Writes the values of `planes` of dimension D. Throws StorageError where the file's shape is not `shape`, and where
/// it is damaged as far as it is read.
void read_volume(const std::string& path, const Shape& shape, Range planes, std::span<float> out);

}  // namespace lockstep::data
