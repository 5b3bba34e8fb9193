// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/data/formats/volume_file.h"
#include "runtime/init/files.h"
#include "runtime/init/find_kinds.h"
#include "runtime/init/paired_folders.h"

namespace lockstep::init {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kVoxelsLookedAt = std::int64_t{1} << 25;  ///< of masks
constexpr std::int64_t kMostExtent = 128;                        ///< of a patch

/// Sorted.
std::vector<fs::path> volumes_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (is_file(entry) && !name.starts_with('.') && data::is_volume_file(name)) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

bool are_volumes(const PairedFolders& pair) {
  return !volumes_in(pair.images).empty() && !volumes_in(pair.masks).empty();
}

/// Whether the first masks hold 0 and 1 alone.
bool are_masks_of_one_thing(const fs::path& folder, std::int64_t max_voxels) {
  std::int64_t left = kVoxelsLookedAt;
  for (const fs::path& path : volumes_in(folder)) {
    const Shape shape = data::volume_shape(path.string(), max_voxels);
    if (shape.numel() > left && left < kVoxelsLookedAt) break;
    left -= shape.numel();
    std::vector<float> values(static_cast<std::size_t>(shape.numel()));
    data::read_volume(path.string(), shape, {0, shape[0]}, values);
    if (!std::ranges::all_of(values, [](float value) { return value == 0 || value == 1; })) return false;
  }
  return true;
}

/// What windows of the folders' volumes have to be: as large as the smallest of them allows. None where all are alike
/// and small.
std::optional<Shape> patch_of(const std::vector<fs::path>& folders, std::int64_t max_voxels) {
  std::vector<Shape> shapes;
  for (const fs::path& folder : folders) {
    for (const fs::path& path : volumes_in(folder)) shapes.push_back(data::volume_shape(path.string(), max_voxels));
  }
  const bool differ = std::ranges::any_of(shapes, [&](const Shape& shape) { return shape != shapes[0]; });
  std::vector<std::int64_t> least(3, max_voxels);
  for (const Shape& shape : shapes) {
    for (std::size_t d = 0; d < 3; ++d) least[d] = std::min(least[d], shape.extents()[d]);
  }
  const bool large = std::ranges::any_of(least, [](std::int64_t extent) { return extent > kMostExtent; });
  if (!differ && !large) return std::nullopt;
  for (std::int64_t& extent : least) extent = std::min(extent, kMostExtent);
  return Shape(std::span<const std::int64_t>(least));
}

FoundData found_in(const PairedFolders& train, const std::optional<PairedFolders>& eval) {
  data::VolumesOptions options{.images = train.images.string(), .masks = train.masks.string()};
  FoundData found{"volumes and their masks"};
  found.masks = are_masks_of_one_thing(train.masks, options.max_voxels);
  if (!found.masks) options.target_kind = data::TargetKind::kClasses;
  std::vector<fs::path> images{train.images};
  if (eval) images.push_back(eval->images);
  found.options.augment.volume.patch = patch_of(images, options.max_voxels);
  if (found.options.augment.volume.patch) {
    found.notes.emplace_back("volumes differ in extents or are large: windows of them are learned");
  }
  found.options.train = options;
  if (eval) {
    options.images = eval->images.string();
    options.masks = eval->masks.string();
    found.options.eval = options;
  }
  return found;
}

}  // namespace

std::optional<FoundData> find_volumes(const fs::path& folder) {
  const auto folders = find_paired_folders(folder, are_volumes);
  if (!folders) return std::nullopt;
  return found_in(folders->train, folders->eval);
}

}  // namespace lockstep::init
