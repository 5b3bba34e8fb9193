// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/image_sides.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/data/formats/image.h"
#include "runtime/data/image_folder_options.h"
#include "runtime/data/image_view.h"

namespace lockstep::init {

std::int64_t shorter_side(std::span<const std::byte> bytes, const std::string& image) {
  std::int64_t side = 0;
  data::decode_image(
      bytes, data::ImageFolderOptions{}.max_pixels,
      [&side](std::int64_t width, std::int64_t height) {
        side = std::min(width, height);
        return data::center_view(width, height, 8, 8);
      },
      image);
  return side;
}

std::int64_t median_of(std::vector<std::int64_t> sides) {
  const auto middle = sides.begin() + static_cast<std::ptrdiff_t>(sides.size() / 2);
  std::ranges::nth_element(sides, middle);
  return *middle;
}

std::string note_of_side(std::int64_t side) {
  return fmt::format("images are about {} pixels on their shorter side", side);
}

}  // namespace lockstep::init
