// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/image_sample.h"

#include <algorithm>
#include <cctype>

#include "runtime/data/formats/resample.h"
#include "runtime/data/image_view.h"

namespace lockstep::data {

void write_image(std::span<const std::byte> content, const ImageCrop& crop, const SampleKey& key,
                 const std::string& from, std::span<float> out) {
  const auto choose = [&](std::int64_t width, std::int64_t height) {
    if (!crop.random) return center_view(width, height, crop.resize, crop.size);
    return random_view(width, height, *crop.random, crop.size, key);
  };
  resample(decode_image(content, crop.max_pixels, choose, from), out);
}

bool is_image_extension(std::string extension) {
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

}  // namespace lockstep::data
