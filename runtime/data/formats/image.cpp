// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/base/error.h"
#include "runtime/data/formats/jpeg.h"
#include "runtime/data/formats/orientation.h"
#include "runtime/data/formats/png.h"
#include "runtime/data/formats/webp.h"

namespace lockstep::data {

namespace {

bool starts_with(std::span<const std::byte> file, std::initializer_list<unsigned> begin) {
  return file.size() >= begin.size() &&
         std::equal(begin.begin(), begin.end(), file.begin(),
                    [](unsigned expected, std::byte found) { return std::byte(expected) == found; });
}

/// A RIFF file, whose length is in the four bytes between.
bool is_webp(std::span<const std::byte> file) {
  return starts_with(file, {'R', 'I', 'F', 'F'}) && file.size() > 8 &&
         starts_with(file.subspan(8), {'W', 'E', 'B', 'P'});
}

DecodedImage decode_stored(std::span<const std::byte> file, std::int64_t max_pixels, const ChooseView& choose,
                           const std::string& from) {
  if (starts_with(file, {0xff, 0xd8, 0xff})) return decode_jpeg(file, max_pixels, choose, from);
  if (starts_with(file, {0x89, 'P', 'N', 'G'})) return decode_png(file, max_pixels, choose, from);
  if (is_webp(file)) return decode_webp(file, max_pixels, choose, from);
  throw StorageError(from + ": is neither JPEG nor PNG nor WebP", "The file is damaged; fetch it again or remove it.");
}

}  // namespace

DecodedImage decode_image(std::span<const std::byte> file, std::int64_t max_pixels, const ChooseView& choose,
                          const std::string& from, Turning turning) {
  const Orientation orientation = turning == Turning::kUpright ? orientation_of(file) : Orientation::kUpright;
  if (orientation == Orientation::kUpright) return decode_stored(file, max_pixels, choose, from);
  const auto choose_stored = [&](std::int64_t width, std::int64_t height) {
    const ImageView view = swaps_sides(orientation) ? choose(height, width) : choose(width, height);
    return stored_view(view, orientation, width, height);
  };
  return upright(decode_stored(file, max_pixels, choose_stored, from), orientation);
}

void require_pixels(std::int64_t width, std::int64_t height, std::int64_t max_pixels, const std::string& from) {
  if (width < 1 || height < 1) throw StorageError(from + ": has no pixels");
  if (height <= max_pixels / width) return;
  throw StorageError(
      fmt::format("{}: has {} x {} pixels, more than the {} that are taken", from, width, height, max_pixels),
      "Scale the image down, or raise max_pixels.");
}

}  // namespace lockstep::data
