// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "runtime/tensor/shape.h"

namespace lockstep::data {

/// Where the voxels of a NIfTI-1 file lie in space: the fields of its header, as they stand. Copied from a volume to
/// what was predicted for it, they lay the one over the other.
struct NiftiGeometry {
  std::array<float, 4> pixdim{1, 1, 1, 1};  ///< qfac; the extents of a voxel along x, y, z
  std::uint8_t units = 0;                   ///< "xyzt_units": 2 for millimetres
  std::int16_t qform = 0;                   ///< code of the quaternion; 0: there is none
  std::int16_t sform = 0;                   ///< code of the affine; 0: there is none
  std::array<float, 3> quaternion{};        ///< b, c, d
  std::array<float, 3> offset{};            ///< of the quaternion: where voxel (0, 0, 0) lies
  std::array<float, 12> rows{};             ///< "srow_x", "srow_y", "srow_z"

  bool operator==(const NiftiGeometry&) const = default;
};

/// Three rows of four numbers: a voxel (x, y, z, 1) of the file -> its place in space.
using Affine = std::array<std::array<double, 4>, 3>;

/// The affine where the file has one, else that of the quaternion (method 2 of
/// https://nifti.nimh.nih.gov/pub/dist/src/niftilib/nifti1.h), else voxels of the file's extents around the middle of
/// the volume with x from right to left, as nibabel takes them. `volume`: [D, H, W, ...].
Affine affine_of(const NiftiGeometry& geometry, const Shape& volume);

}  // namespace lockstep::data
