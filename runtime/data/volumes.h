// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/dataset.h"
#include "runtime/data/dataset_kind.h"
#include "runtime/data/window.h"

namespace lockstep::data {

/// Volumes and their masks, a file each.
struct VolumesOptions {
  std::string images = {};                          ///< a folder of *.nii, *.nii.gz and *.npy files
  std::string masks = {};                           ///< a folder of files of the same names
  TargetKind target_kind = TargetKind::kNumbers;    ///< numbers in [0, 1], or classes
  std::int64_t classes = 0;                         ///< 0: the highest of the masks + 1
  std::int64_t max_voxels = std::int64_t{1} << 28;  ///< numbers of a volume; a larger one is refused, unread
  /// Extents [D, H, W] of a window of each volume, which may differ in extents then; make_dataset() gives it.
  std::optional<Shape> patch = {};
  WindowPlace place = WindowPlace::kRandom;

  static constexpr std::string_view kKind = "volumes";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("images", &VolumesOptions::images, Names::kFolder, Required{}),
                      option("masks", &VolumesOptions::masks, Names::kFolder, Required{}),
                      option("target_kind", &VolumesOptions::target_kind),
                      option("classes", &VolumesOptions::classes, kAtLeastOne, Otherwise::kFollows),
                      option("max_voxels", &VolumesOptions::max_voxels, kAtLeastOne));
  }
  bool operator==(const VolumesOptions&) const = default;
};

/// By field; what is in the folders is looked at when they are opened.
FieldProblems problems_of(const VolumesOptions& options);

/// Volumes [D, H, W, C] and their masks [D, H, W]: the same file name in both folders is a pair, sorted by name. A
/// NIfTI file's dimensions x, y, z are W, H, D, its fourth is C; its values are those after scl_slope and scl_inter.
/// Files are read when their sample is drawn, as far as it goes; only headers are read before, and masks where their
/// classes are counted.
/// With a patch a sample is a window of each volume, else all volumes have one shape.
class VolumesDataset : public Dataset {
 public:
  /// Throws FieldError for options without a meaning, and StorageError that names the file for a volume without a
  /// partner, of other extents than its mask, smaller than the patch or, without one, of another shape than the first.
  explicit VolumesDataset(const VolumesOptions& options);

  /// One of the volumes as a data set of its own: whole, however large the patch.
  DatasetPtr whole(std::int64_t index) const;

  std::int64_t size() const override { return std::ssize(pairs_); }
  Shape sample_shape() const override { return sample_shape_; }
  std::int64_t classes() const override { return classes_; }
  Shape target_shape() const override { return Shape(sample_shape_.extents().first(3)); }
  /// Throws StorageError that names file and index of a volume that is damaged, and of a mask with a value that is
  /// neither a class nor, without classes, within [0, 1].
  void get(const SampleKey& key, const Sample& sample) const override;
  void add_to_digest(DataHashes& hashes) const override;
  /// Adds that of its image's file: its size, and at most 64 blocks of 64 KiB.
  void add_content(std::int64_t index, Hash128& hash) const override;

 private:
  struct Pair {
    std::string name;  ///< in both folders
    Shape shape;       ///< of the image
  };

  /// Those of `all`, without a patch, of which it has one.
  VolumesDataset(const VolumesDataset& all, std::int64_t index);

  void pair_up();
  /// Three extents that each volume holds.
  Shape common_patch() const;
  void require_fitting(const Pair& pair) const;
  std::vector<float> mask_of(const Pair& pair) const;
  std::int64_t count_classes() const;
  /// Reads the sample's window of a file, and no further than the window's last plane.
  void read_window(const std::string& path, const Shape& shape, const Extents& from, std::span<float> out) const;
  void write_mask(const SampleKey& key, const Pair& pair, const Extents& from, const Sample& sample) const;

  VolumesOptions options_;
  std::vector<Pair> pairs_;
  Shape sample_shape_;
  std::int64_t classes_ = 0;
};

/// The highest label of the masks + 1. Throws as the data set does.
std::int64_t count_volume_classes(const VolumesOptions& options);

/// Volumes, as a job asks for them.
struct VolumesKind : DatasetKind<VolumesKind, VolumesOptions> {
  static DatasetPtr open(const Options& options) { return std::make_shared<VolumesDataset>(options); }
  static Targets targets(const Options& options);
  static std::int64_t count_classes(const Options& train) { return count_volume_classes(train); }
};

}  // namespace lockstep::data
