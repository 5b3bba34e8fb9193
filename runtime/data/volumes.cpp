// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/volumes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/base/option_checks.h"
#include "runtime/data/data_digest.h"
#include "runtime/data/formats/content_hash.h"
#include "runtime/data/formats/volume_file.h"

namespace lockstep::data {

namespace {

namespace fs = std::filesystem;

/// The names of a folder's volumes, sorted.
std::vector<std::string> list_volumes(const std::string& folder) {
  std::vector<std::string> names;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      std::string name = entry.path().filename().string();
      if (!name.starts_with('.') && is_volume_file(name) && entry.is_regular_file()) names.push_back(std::move(name));
    }
  } catch (const fs::filesystem_error& error) {
    throw StorageError("cannot list " + folder + ": " + error.what());
  }
  std::ranges::sort(names);
  return names;
}

Shape with_patch(Shape shape, const Shape& patch) {
  for (int d = 0; d < 3; ++d) shape = shape.with(d, patch[d]);
  return shape;
}

}  // namespace

FieldProblems problems_of(const VolumesOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  if (options.classes > 0 && options.target_kind == TargetKind::kNumbers) {
    checks.error("classes", "is for target_kind: CLASSES", {"target_kind"});
  }
  if (options.patch && (options.patch->rank() != 3 || options.patch->numel() < 1)) {
    checks.error("patch", "must be three extents of at least 1, is " + options.patch->str());
  }
  return checks.problems();
}

VolumesDataset::VolumesDataset(const VolumesOptions& options) : options_(options) {
  require_none(problems_of(options), "volumes");
  pair_up();
  const Shape& first = pairs_.front().shape;
  sample_shape_ = options_.patch ? with_patch(first, *options_.patch) : first;
  for (const Pair& pair : pairs_) require_fitting(pair);
  if (options_.target_kind == TargetKind::kNumbers) return;
  classes_ = options_.classes > 0 ? options_.classes : count_classes();
}

VolumesDataset::VolumesDataset(const VolumesDataset& all, std::int64_t index)
    : options_(all.options_),
      pairs_{all.pairs_[static_cast<std::size_t>(index)]},
      sample_shape_(pairs_.front().shape),
      classes_(all.classes_) {
  options_.patch.reset();
}

DatasetPtr VolumesDataset::whole(std::int64_t index) const { return DatasetPtr(new VolumesDataset(*this, index)); }

void VolumesDataset::pair_up() {
  const std::vector<std::string> images = list_volumes(options_.images), masks = list_volumes(options_.masks);
  if (images.empty()) {
    throw StorageError(options_.images + ": holds no volume", "Volumes are files *.nii, *.nii.gz and *.npy.");
  }
  std::vector<std::string> alone;
  std::ranges::set_symmetric_difference(images, masks, std::back_inserter(alone));
  if (!alone.empty()) {
    const bool image = std::ranges::binary_search(images, alone.front());
    throw StorageError(fmt::format("{}/{} has no partner in {}", image ? options_.images : options_.masks,
                                   alone.front(), image ? options_.masks : options_.images),
                       "A volume and its mask have the same file name.");
  }
  for (const std::string& name : images) {
    pairs_.push_back({name, volume_shape(options_.images + "/" + name, options_.max_voxels)});
  }
}

Shape VolumesDataset::common_patch() const {
  constexpr std::int64_t kMost = 64, kUnit = 16;  // a multiple of 16 goes through four levels of a unet3d
  Shape patch{kMost, kMost, kMost};
  for (const Pair& pair : pairs_) {
    for (int d = 0; d < patch.rank(); ++d) patch = patch.with(d, std::min(patch[d], pair.shape[d]));
  }
  for (int d = 0; d < patch.rank(); ++d) {
    if (patch[d] > kUnit) patch = patch.with(d, patch[d] / kUnit * kUnit);
  }
  return patch;
}

void VolumesDataset::require_fitting(const Pair& pair) const {
  const std::string path = options_.images + "/" + pair.name;
  const std::string mask_path = options_.masks + "/" + pair.name;
  const Shape mask = volume_shape(mask_path, options_.max_voxels);
  if (mask != pair.shape.with(3, 1)) {
    throw StorageError(fmt::format("{} has shape {}, but its image {}: expected {}", mask_path, mask.str(),
                                   pair.shape.str(), pair.shape.with(3, 1).str()),
                       "A mask has one number a voxel.");
  }
  if (!options_.patch && pair.shape != sample_shape_) {
    throw StorageError(
        fmt::format("{} has shape {}, but {} has {}", path, pair.shape.str(), pairs_.front().name, sample_shape_.str()),
        fmt::format("Volumes of several shapes are trained on in patches, such as data {{ augment {{ patch: {} }} }}; "
                    "whole ones are evaluated by `lockstep eval --whole-volumes` and predicted by `lockstep infer RUN "
                    "--input`.",
                    common_patch().str()));
  }
  if (pair.shape[3] != sample_shape_[3]) {
    throw StorageError(
        fmt::format("{} has {} channels, but {} has {}", path, pair.shape[3], pairs_.front().name, sample_shape_[3]),
        "All volumes have as many channels; write it again, or leave it out.");
  }
  const bool holds =
      pair.shape[0] >= sample_shape_[0] && pair.shape[1] >= sample_shape_[1] && pair.shape[2] >= sample_shape_[2];
  if (holds) return;
  throw StorageError(
      fmt::format("{} has shape {}, which holds no patch {}", path, pair.shape.str(), sample_shape_.str()),
      "Set a smaller patch, or leave the volume out.");
}

std::vector<float> VolumesDataset::mask_of(const Pair& pair) const {
  const Shape shape = pair.shape.with(3, 1);
  std::vector<float> mask(static_cast<std::size_t>(shape.numel()));
  read_volume(options_.masks + "/" + pair.name, shape, {0, shape[0]}, mask);
  return mask;
}

std::int64_t VolumesDataset::count_classes() const {
  float highest = 0;
  for (const Pair& pair : pairs_) {
    const std::vector<float> mask = mask_of(pair);
    highest = std::max(highest, *std::ranges::max_element(mask));
    if (highest < static_cast<float>(kMostCountedClasses)) continue;
    throw StorageError(fmt::format("{}/{}: label {} is too high for a class", options_.masks, pair.name, highest),
                       "If the file is damaged, mend it; otherwise give the number of classes.");
  }
  return static_cast<std::int64_t>(highest) + 1;
}

void VolumesDataset::get(const SampleKey& key, const Sample& sample) const {
  const Pair& pair = pairs_[static_cast<std::size_t>(key.index)];
  const Extents extents = extents_of(pair.shape), patch = extents_of(sample_shape_);
  const Extents from = options_.patch ? window_begin(extents, patch, options_.place, key) : Extents{};
  read_window(options_.images + "/" + pair.name, pair.shape, from, sample.values);
  write_mask(key, pair, from, sample);
}

void VolumesDataset::add_to_digest(DataHashes& hashes) const {
  const auto add = [this](const std::string& folder, Hash128& hash) {
    std::vector<std::string> paths;
    for (const Pair& pair : pairs_) paths.push_back(folder + "/" + pair.name);
    add_files(paths, hash);
  };
  add(options_.masks, hashes.labels);
  add(options_.images, hashes.content);
}

void VolumesDataset::add_content(std::int64_t index, Hash128& hash) const {
  // The ends of a volume may hold nothing but background.
  constexpr std::uint64_t kBlocks = 64;
  add_sample_of_file(options_.images + "/" + pairs_[static_cast<std::size_t>(index)].name, kBlocks, hash);
}

void VolumesDataset::read_window(const std::string& path, const Shape& shape, const Extents& from,
                                 std::span<float> out) const {
  const Extents patch = extents_of(sample_shape_);
  Extents extents = extents_of(shape);
  const auto begin = static_cast<std::int64_t>(from[0]);
  const Range planes{begin, begin + sample_shape_[0]};
  if (patch[1] == extents[1] && patch[2] == extents[2]) return read_volume(path, shape, planes, out);
  std::vector<float> slab(static_cast<std::size_t>(shape.with(0, planes.size()).numel()));
  read_volume(path, shape, planes, slab);
  extents[0] = patch[0];
  copy_window<float>(slab, extents, {0, from[1], from[2]}, patch, static_cast<std::size_t>(shape[3]), out);
}

void VolumesDataset::write_mask(const SampleKey& key, const Pair& pair, const Extents& from,
                                const Sample& sample) const {
  std::vector<float> mask(static_cast<std::size_t>(target_shape().numel()));
  read_window(options_.masks + "/" + pair.name, pair.shape.with(3, 1), from, mask);
  const auto is_sound = [this](float value) {
    return classes_ > 0 ? value >= 0 && value < static_cast<float>(classes_) && value == std::floor(value)
                        : value >= 0 && value <= 1;
  };
  if (const auto wrong = std::ranges::find_if_not(mask, is_sound); wrong != mask.end()) {
    throw StorageError(
        fmt::format("{}/{} (sample {}): the mask holds {}, which is {}", options_.masks, pair.name, key.index, *wrong,
                    classes_ > 0 ? fmt::format("none of the {} classes", classes_) : "outside [0, 1]"),
        "Check target_kind and the number of classes.");
  }
  if (classes_ == 0) {
    std::ranges::copy(mask, sample.target.begin());
    return;
  }
  std::ranges::transform(mask, sample.labels.begin(), [](float value) { return static_cast<std::int64_t>(value); });
}

std::int64_t count_volume_classes(const VolumesOptions& options) { return VolumesDataset(options).classes(); }

Targets VolumesKind::targets(const Options& options) {
  return options.target_kind == TargetKind::kNumbers ? Targets::kMasks : Targets::kClasses;
}

}  // namespace lockstep::data
