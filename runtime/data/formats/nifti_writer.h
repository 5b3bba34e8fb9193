// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/data/formats/nifti_geometry.h"
#include "runtime/tensor/shape.h"

namespace lockstep::data {

// Each writes one NIfTI-1 file, whole or not at all: plain, or gzipped where the name ends in .gz. The same content
// makes the same bytes. They throw UsageError for a name that does not end in .nii or .nii.gz, ShapeError for another
// number of values than the shape has and for an extent above 32767, the format's limit, and StorageError.

/// Numbers [D, H, W, C] as float32: the file's dimensions are W, H, D and, of more than one channel, C.
void write_nifti(const std::string& path, const NiftiGeometry& geometry, const Shape& shape,
                 std::span<const float> values);

/// Labels [D, H, W] as uint8, or as int32 where one of them is outside 0 .. 255.
void write_nifti(const std::string& path, const NiftiGeometry& geometry, const Shape& shape,
                 std::span<const std::int64_t> labels);

}  // namespace lockstep::data
