// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/image_sample.h"

#include "runtime/data/formats/resample.h"
#include "runtime/data/image_view.h"

namespace lockstep::data {

void write_image(std::span<const std::byte> content, const ImageCrop& crop, const SampleKey& key,
                 const std::string& from, std::span<float> out) {
  const auto choose = [&](std::int64_t width, std::int64_t height) {
    if (!crop.random) return center_view(width, height, crop.resize, crop.size);
    return random_view(width, height, *crop.random, crop.size, key);
  };
  resample(decode_image(content, crop.max_pixels, choose, from, crop.turning), out);
}

}  // namespace lockstep::data
