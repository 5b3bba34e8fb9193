// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/data/formats/nifti_geometry.h"
#include "runtime/data/formats/range.h"
#include "runtime/tensor/shape.h"

namespace lockstep::data {

/// The header of a NIfTI-1 file, *.nii or *.nii.gz: https://nifti.nimh.nih.gov/pub/dist/src/niftilib/nifti1.h
struct NiftiHeader {
  Shape shape;             ///< [D, H, W, C]: the file's dimensions z, y, x, and the product of the fourth and fifth
  int type = 0;            ///< its "datatype"
  bool swapped = false;    ///< whether the bytes of a number come in another order than here
  std::uint64_t data = 0;  ///< where the voxels begin, in bytes
  double slope = 1;        ///< a value is slope * stored + intercept
  double intercept = 0;
  NiftiGeometry geometry = {};
};

/// Reads the header alone. Throws StorageError that names file and byte for anything but integers of 1 to 8 bytes and
/// floats of 4 or 8 in 3 to 5 dimensions, for what NIfTI-2 and pairs of files have, for a volume of more than
/// `max_voxels` numbers, and for a file that is too small to hold them.
NiftiHeader read_nifti_header(const std::string& path, std::int64_t max_voxels);

/// Writes the values of `planes` of dimension z, within those that there are, channels last. A gzipped file is unpacked
/// as it is read, and no further than the last of these planes. Throws StorageError for a file that is damaged or too
/// short as far as it is read.
void read_nifti(const std::string& path, const NiftiHeader& header, Range planes, std::span<float> out);

}  // namespace lockstep::data
