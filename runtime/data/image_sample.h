// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "runtime/data/dataset.h"
#include "runtime/data/formats/image.h"
#include "runtime/data/image_folder_options.h"

namespace lockstep::data {

/// The most bytes of a compressed image. A larger file is refused, unread.
inline constexpr std::uint64_t kMostImageBytes = std::uint64_t{256} << 20;

/// The part of an image that a sample shows.
struct ImageCrop {
  std::int64_t size = 224;                              ///< samples are [size, size, 3]
  std::int64_t resize = 256;                            ///< shorter side before the center crop
  std::int64_t max_pixels = 0;                          ///< of an image; a larger one is refused before it is decoded
  std::optional<RandomResizedCropOptions> random = {};  ///< instead of the center crop
  Turning turning = Turning::kAsStored;                 ///< before the crop
};

/// The crop of ImageFolderOptions or ShardsOptions.
template <class Options>
ImageCrop crop_of(Options options) {
  complete(options);
  return {options.size, options.resize, options.max_pixels, options.random_resized_crop,
          options.exif_orientation ? Turning::kUpright : Turning::kAsStored};
}

/// Decodes a JPEG, PNG or WebP file's content into values in [0, 1]. `from` names it in messages. Throws StorageError
/// for what is damaged or too large.
void write_image(std::span<const std::byte> content, const ImageCrop& crop, const SampleKey& key,
                 const std::string& from, std::span<float> out);

}  // namespace lockstep::data
