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
#include "runtime/data/description.h"
#include "runtime/data/formats/mask.h"
#include "runtime/data/image_folder_options.h"
#include "runtime/data/window.h"

namespace lockstep::data {

/// Images and a mask of each.
struct ImageMasksOptions {
  std::string images = {};                          ///< a folder of JPEG, PNG and WebP files, in folders within it too
  std::string masks = {};                           ///< a folder of PNG files of the same names but for the ending
  std::int64_t size = 224;                          ///< samples are [size, size, 3]
  std::int64_t resize = 0;                          ///< the shorter side before the crop; 0: size
  TargetKind target_kind = TargetKind::kClasses;    ///< a class a pixel, or numbers in [0, 1]
  std::int64_t classes = 0;                         ///< 0: the highest of the masks + 1
  std::int64_t ignore = 255;                        ///< masks' value of pixels that do not count; of classes
  std::int64_t max_pixels = std::int64_t{1} << 26;  ///< of a file; a larger one is refused before it is decoded
  bool exif_orientation = false;                    ///< as of ImageFolderOptions; masks are those of the upright images
  /// Draws this instead of a window of the scaled image; make_dataset() gives it to training data.
  std::optional<RandomResizedCropOptions> random_resized_crop = {};
  /// Of the window; make_dataset() has training data draw it.
  WindowPlace place = WindowPlace::kMiddle;

  static constexpr std::string_view kKind = "image_masks";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("images", &ImageMasksOptions::images, Names::kFolder, Required{}),
                      option("masks", &ImageMasksOptions::masks, Names::kFolder, Required{}),
                      option("size", &ImageMasksOptions::size),
                      option("resize", &ImageMasksOptions::resize, kAtLeastOne, Otherwise::kFollows),
                      option("target_kind", &ImageMasksOptions::target_kind),
                      option("classes", &ImageMasksOptions::classes, kAtLeastOne, Otherwise::kFollows),
                      option("ignore", &ImageMasksOptions::ignore, Bound{"in [0, 255]", 0, false, 255, false}),
                      option("max_pixels", &ImageMasksOptions::max_pixels, kAtLeastOne),
                      option("exif_orientation", &ImageMasksOptions::exif_orientation));
  }
  bool operator==(const ImageMasksOptions&) const = default;
};

/// Gives `resize` its value where it follows from the size.
void complete(ImageMasksOptions& options);

/// By field; what is in the folders is looked at when they are opened.
FieldProblems problems_of(const ImageMasksOptions& options);

/// Images and masks with a value a pixel: "a/photo.jpg" of the one folder and "a/photo.png" of the other are a pair,
/// sorted by name. A sample is a window of size x size of the image after its shorter side was scaled to `resize`, of
/// values in [0, 1], and the same window of the mask, scaled to the nearest pixel: PIL's NEAREST. Files are read when
/// their sample is drawn; masks are read before where their classes are counted.
class ImageMasksDataset : public Dataset {
 public:
  /// Throws FieldError for options without a meaning, and StorageError that names images without a mask, masks without
  /// an image, and what is wrong with a mask whose classes are counted.
  explicit ImageMasksDataset(const ImageMasksOptions& options);

  Description describe() const;

  std::int64_t size() const override { return std::ssize(pairs_); }
  Shape sample_shape() const override { return {options_.size, options_.size, 3}; }
  std::int64_t classes() const override { return classes_; }
  /// Adds that of its image's file, as ImageFolderDataset does: windows of one image stay together.
  void add_content(std::int64_t index, Hash128& hash) const override;
  Shape target_shape() const override { return {options_.size, options_.size}; }
  /// Throws StorageError that names the file and index of an image or mask that is damaged or too large, of two that
  /// differ in extents, and of a mask with a value that is no class.
  void get(const SampleKey& key, const Sample& sample) const override;
  void add_to_digest(DataHashes& hashes) const override;

 private:
  struct Pair {
    std::string image;  ///< below the folder of images
    std::string mask;   ///< below the folder of masks
  };

  void pair_up();
  std::int64_t count_classes() const;
  std::string image_path(const Pair& pair) const { return options_.images + "/" + pair.image; }
  std::string mask_path(const Pair& pair) const { return options_.masks + "/" + pair.mask; }
  void write_mask(const MaskImage& mask, const ImageView& view, const std::string& from, const Sample& sample) const;

  ImageMasksOptions options_;
  std::vector<Pair> pairs_;
  std::vector<std::string> remarks_;
  std::int64_t classes_ = 0;
};

/// The highest class of the masks + 1. Throws as the data set does.
std::int64_t count_mask_classes(const ImageMasksOptions& options);

/// Images with masks, as a job asks for them.
struct ImageMasksKind : DatasetKind<ImageMasksKind, ImageMasksOptions> {
  static DatasetPtr open(const Options& options) { return std::make_shared<ImageMasksDataset>(options); }
  static Description describe(const Options& options) { return ImageMasksDataset(options).describe(); }
  static Targets targets(const Options& options);
  static std::int64_t count_classes(const Options& train) { return count_mask_classes(train); }
};

}  // namespace lockstep::data
