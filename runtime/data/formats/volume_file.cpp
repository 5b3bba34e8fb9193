// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/volume_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/data/formats/nifti.h"
#include "runtime/data/formats/npy.h"

namespace lockstep::data {

namespace {

bool is_npy(const std::string& path) { return path.ends_with(".npy"); }

Shape shape_of(const NpyArray& array, std::int64_t max_voxels) {
  const std::span<const std::int64_t> extents(array.extents());
  if (extents.size() != 3 && extents.size() != 4) {
    throw StorageError(fmt::format("{}: expected a volume [D, H, W] or [D, H, W, C], found [{}]", array.path(),
                                   fmt::join(extents, ", ")));
  }
  if (array.numel() == 0) throw StorageError(array.path() + ": holds no voxels");
  if (array.numel() > max_voxels) {
    throw StorageError(
        fmt::format("{}: has {} voxels, more than the {} that are taken", array.path(), array.numel(), max_voxels),
        "Cut the volume, or raise max_voxels.");
  }
  return {extents[0], extents[1], extents[2], extents.size() == 4 ? extents[3] : 1};
}

void require_shape(const Shape& found, const Shape& expected, const std::string& path) {
  if (found == expected) return;
  throw StorageError(fmt::format("{}: was {} when the run began, is {}", path, expected.str(), found.str()));
}

}  // namespace

bool is_volume_file(const std::string& name) {
  return name.ends_with(".nii") || name.ends_with(".nii.gz") || name.ends_with(".npy");
}

Shape volume_shape(const std::string& path, std::int64_t max_voxels) {
  return is_npy(path) ? shape_of(NpyArray(path), max_voxels) : read_nifti_header(path, max_voxels).shape;
}

void read_volume(const std::string& path, const Shape& shape, Range planes, std::span<float> out) {
  if (is_npy(path)) {
    const NpyArray array(path);
    require_shape(shape_of(array, shape.numel()), shape, path);
    return array.read(planes.begin * (shape.numel() / shape[0]), out);
  }
  const NiftiHeader header = read_nifti_header(path, shape.numel());
  require_shape(header.shape, shape, path);
  read_nifti(path, header, planes, out);
}

}  // namespace lockstep::data
