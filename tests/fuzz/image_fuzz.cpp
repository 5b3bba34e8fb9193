// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/data/formats/image.h"
#include "runtime/data/formats/mask.h"
#include "runtime/data/formats/resample.h"
#include "tests/fuzz/images.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// What is decoded is scaled, too.
void decode(std::string_view bytes, data::Turning turning) {
  const auto choose = [](std::int64_t width, std::int64_t height) {
    return data::ImageView{0, 0, static_cast<double>(width), static_cast<double>(height), {0, 0, width, height}, 8};
  };
  try {
    std::vector<float> out(8 * 8 * 3);
    data::resample(data::decode_image(std::as_bytes(std::span(bytes)), 1 << 16, choose, "image", turning), out);
  } catch (const StorageError&) {
  }
}

void fuzz_mask(std::string_view bytes) {
  try {
    const data::MaskImage mask = data::decode_mask(std::as_bytes(std::span(bytes)), 1 << 16, "mask");
    std::vector<std::uint8_t> out(8 * 8);
    data::take_nearest(mask, {-3, 2, 1e9, static_cast<double>(mask.height), {}, 8}, out);
  } catch (const StorageError&) {
  }
}

void fuzz_image(std::string_view bytes) {
  fuzz_mask(bytes);
  decode(bytes, data::Turning::kAsStored);
  decode(bytes, data::Turning::kUpright);
}

}  // namespace

Target image_target() { return {.parse = fuzz_image, .seeds = small_images()}; }

}  // namespace lockstep::fuzz
