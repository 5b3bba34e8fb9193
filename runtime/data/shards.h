// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/files/stored_file.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/dataset.h"
#include "runtime/data/dataset_kind.h"
#include "runtime/data/description.h"
#include "runtime/data/image_folder_options.h"
#include "runtime/data/image_sample.h"
#include "runtime/data/passed_over.h"

namespace lockstep::data {

/// Images and labels in tar files.
struct ShardsOptions {
  std::vector<std::string> files = {};              ///< patterns of expand_braces(); at least one
  std::int64_t size = 224;                          ///< samples are [size, size, 3]
  std::int64_t resize = 0;                          ///< shorter side before the center crop; 0: size * 256 / 224
  std::int64_t max_pixels = std::int64_t{1} << 26;  ///< of an image; a larger one is refused before it is decoded
  std::int64_t classes = 0;                         ///< 0: the highest label + 1
  bool exif_orientation = false;                    ///< as of ImageFolderOptions
  /// Draws this instead of the center crop; make_dataset() gives it to training data.
  std::optional<RandomResizedCropOptions> random_resized_crop = {};

  static constexpr std::string_view kKind = "shards";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(
        option("files", &ShardsOptions::files, Names::kFilePattern, Required{"tar files, [\"train-{000..146}.tar\"]"}),
        option("size", &ShardsOptions::size),
        option("resize", &ShardsOptions::resize, kAtLeastOne, Otherwise::kFollows),
        option("max_pixels", &ShardsOptions::max_pixels, kAtLeastOne),
        option("classes", &ShardsOptions::classes, kAtLeastOne, Otherwise::kFollows),
        option("exif_orientation", &ShardsOptions::exif_orientation));
  }
  bool operator==(const ShardsOptions&) const = default;
};

/// By field; what the files hold is looked at when they are opened.
FieldProblems problems_of(const ShardsOptions& options);

/// Tar files as WebDataset writes them: members KEY.jpg, KEY.jpeg, KEY.png or KEY.webp hold an image and KEY.cls its
/// label, a whole number in ASCII; a key is the name up to the first dot behind the last slash, and its members stand
/// together. Other members are passed over. Samples are [size, size, 3] of values in [0, 1], in the files' order. The
/// files' headers are read when the set is made; images are read where they lie, when they are drawn.
class ShardsDataset : public Dataset {
 public:
  /// Throws FieldError for options without a meaning, and StorageError that names file and byte for what is wrong with
  /// a file: read_tar_index()'s errors, an image without a label or the other way round, a key that comes twice.
  explicit ShardsDataset(const ShardsOptions& options);

  Description describe() const;

  std::int64_t size() const override { return std::ssize(samples_); }
  Shape sample_shape() const override { return {crop_.size, crop_.size, 3}; }
  std::int64_t classes() const override { return classes_; }
  /// Throws StorageError that names file, byte and index of an image that is damaged or too large.
  TargetSummary target_summary() const override;
  void get(const SampleKey& key, const Sample& sample) const override;
  void add_to_digest(DataHashes& hashes) const override;
  /// Adds that of its member: its size, and the first and the last 64 KiB.
  void add_content(std::int64_t index, Hash128& hash) const override;

 private:
  struct Place {
    std::uint64_t offset;
    std::uint32_t bytes;
    std::uint32_t file;
    std::int64_t label;
  };

  void add_file(const StoredFile& file, std::uint32_t number, PassedOver& passed);
  /// Fills `out` with an image's bytes from `offset` on.
  void read(const Place& place, std::uint64_t offset, std::span<std::byte> out) const;

  ImageCrop crop_;
  std::vector<std::string> paths_;
  std::vector<std::unique_ptr<const StoredFile>> open_;  // the first of paths_
  std::vector<Place> samples_;
  std::int64_t classes_ = 0;
  std::vector<std::string> remarks_;
};

/// The files' paths, braces expanded.
std::vector<std::string> shard_paths(const ShardsOptions& options);

/// The highest label of the files + 1. Throws as the data set does.
std::int64_t count_shard_classes(const ShardsOptions& options);

/// Shards, as a job asks for them.
struct ShardsKind : DatasetKind<ShardsKind, ShardsOptions> {
  static DatasetPtr open(const Options& options) { return std::make_shared<ShardsDataset>(options); }
  static Description describe(const Options& options) { return ShardsDataset(options).describe(); }
  static std::int64_t count_classes(const Options& train) { return count_shard_classes(train); }
};

}  // namespace lockstep::data
