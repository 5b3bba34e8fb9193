// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/image_sides.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/data/formats/image.h"
#include "runtime/data/formats/orientation.h"
#include "runtime/data/image_folder_options.h"
#include "runtime/data/image_view.h"

namespace lockstep::init {

void LookedAt::add(std::span<const std::byte> bytes, const std::string& image) {
  std::int64_t side = 0;
  const auto choose = [&side](std::int64_t width, std::int64_t height) {
    side = std::min(width, height);
    return data::center_view(width, height, 8, 8);
  };
  try {
    data::decode_image(bytes, data::ImageFolderOptions{}.max_pixels, choose, image);
  } catch (const StorageError& error) {
    errors.emplace_back(error.what());
    return;
  }
  sides.push_back(side);
  if (data::orientation_of(bytes) != data::Orientation::kUpright) ++turned;
}

std::int64_t LookedAt::median_side() const {
  std::vector<std::int64_t> sorted = sides;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

void require_readable(const LookedAt& images) {
  if (!images.sides.empty() || images.errors.empty()) return;
  throw StorageError(fmt::format("none of {} images that were looked at can be read:\n{}", images.errors.size(),
                                 fmt::join(images.errors, "\n")),
                     "Fetch the files again.");
}

std::string note_of_side(std::int64_t side) {
  return fmt::format("images are about {} pixels on their shorter side", side);
}

std::string note_of_turned(const LookedAt& images) {
  return fmt::format(
      "{} of {} images looked at are stored turned, as their EXIF block says: exif_orientation: true "
      "turns them upright",
      images.turned, images.sides.size());
}

}  // namespace lockstep::init
