// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/orientation.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace lockstep::data {

namespace {

using Bytes = std::span<const std::byte>;

/// A number of `count` bytes at `at`; none where the bytes end before.
std::optional<std::uint32_t> number(Bytes bytes, std::size_t at, std::size_t count, bool little_endian) {
  if (at > bytes.size() || count > bytes.size() - at) return std::nullopt;
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + (little_endian ? count - 1 - i : i)]);
  }
  return value;
}

bool begins_with(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(), [](char c, std::byte b) { return std::byte(c) == b; });
}

/// The bytes [at, at + count), or as many of them as there are.
Bytes part(Bytes bytes, std::size_t at, std::size_t count) {
  if (at >= bytes.size()) return {};
  return bytes.subspan(at, std::min(count, bytes.size() - at));
}

/// The TIFF block within a JPEG's segment APP1 "Exif"; empty where it has none before its pixels.
Bytes exif_of_jpeg(Bytes file) {
  for (std::size_t at = 2; at + 4 <= file.size();) {
    if (file[at] != std::byte{0xff}) return {};
    const auto marker = std::to_integer<unsigned>(file[at + 1]);
    if (marker == 0xff) {  // fill bytes
      ++at;
      continue;
    }
    if (marker == 0xda || marker == 0xd9) return {};  // pixels begin, or the image ends
    const std::size_t length = *number(file, at + 2, 2, false);
    if (length < 2) return {};
    const Bytes segment = part(file, at + 4, length - 2);
    if (marker == 0xe1 && begins_with(segment, std::string_view("Exif\0\0", 6))) return segment.subspan(6);
    at += 2 + length;
  }
  return {};
}

/// Of a PNG's chunk eXIf.
Bytes exif_of_png(Bytes file) {
  for (std::size_t at = 8; at + 8 <= file.size();) {
    const std::size_t length = *number(file, at, 4, false);
    if (begins_with(file.subspan(at + 4), "eXIf")) return part(file, at + 8, length);
    at += 12 + length;
  }
  return {};
}

/// Of a WebP's chunk EXIF, where some writers put "Exif" before the block, as in a JPEG.
Bytes exif_of_webp(Bytes file) {
  for (std::size_t at = 12; at + 8 <= file.size();) {
    const std::size_t length = *number(file, at + 4, 4, true);
    if (begins_with(file.subspan(at), "EXIF")) {
      const Bytes chunk = part(file, at + 8, length);
      return begins_with(chunk, std::string_view("Exif\0\0", 6)) ? chunk.subspan(6) : chunk;
    }
    at += 8 + length + length % 2;
  }
  return {};
}

/// The value of the tag in the first directory of a TIFF block; 0 where it has none.
std::uint32_t orientation_in(Bytes tiff) {
  constexpr std::uint32_t kTag = 0x0112, kByte = 1, kShort = 3, kLong = 4;
  const bool little = begins_with(tiff, "II");
  if (!little && !begins_with(tiff, "MM")) return 0;
  const std::size_t directory = number(tiff, 4, 4, little).value_or(0);
  const std::uint32_t entries = number(tiff, directory, 2, little).value_or(0);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t at = directory + 2 + 12 * std::size_t{i};
    const auto tag = number(tiff, at, 2, little);
    if (!tag) return 0;
    if (*tag != kTag) continue;
    const std::uint32_t type = number(tiff, at + 2, 2, little).value_or(0);
    const std::size_t bytes = type == kByte ? 1 : type == kShort ? 2 : type == kLong ? 4 : 0;
    if (bytes == 0 || number(tiff, at + 4, 4, little) != 1u) return 0;
    return number(tiff, at + 8, bytes, little).value_or(0);
  }
  return 0;
}

/// Whether the upright image's columns, rows run against those of the file's pixels that become them.
struct Reversal {
  bool columns;
  bool rows;
};

/// After width and height have changed places, where they do.
Reversal reversal_of(Orientation orientation) {
  switch (orientation) {
    case Orientation::kMirrored:
    case Orientation::kTurned90:
      return {true, false};
    case Orientation::kTurned180:
    case Orientation::kTransposedTurned180:
      return {true, true};
    case Orientation::kMirroredDown:
    case Orientation::kTurned270:
      return {false, true};
    case Orientation::kUpright:
    case Orientation::kTransposed:
      break;
  }
  return {false, false};
}

/// The view of a picture of width x height after its columns or rows have been reversed.
ImageView reversed(ImageView view, Reversal reversal, std::int64_t width, std::int64_t height) {
  if (reversal.columns) {
    view.left = static_cast<double>(width) - view.left - view.width;
    view.seen.left = width - view.seen.left - view.seen.width;
  }
  if (reversal.rows) {
    view.top = static_cast<double>(height) - view.top - view.height;
    view.seen.top = height - view.seen.top - view.seen.height;
  }
  return view;
}

ImageView transposed(ImageView view) {
  std::swap(view.left, view.top);
  std::swap(view.width, view.height);
  std::swap(view.seen.left, view.seen.top);
  std::swap(view.seen.width, view.seen.height);
  return view;
}

}  // namespace

Orientation orientation_of(std::span<const std::byte> file) {
  Bytes tiff;
  if (begins_with(file, "\xff\xd8")) {
    tiff = exif_of_jpeg(file);
  } else if (begins_with(file, "\x89PNG")) {
    tiff = exif_of_png(file);
  } else if (begins_with(file, "RIFF")) {
    tiff = exif_of_webp(file);
  }
  const std::uint32_t value = orientation_in(tiff);
  return value >= 1 && value <= 8 ? static_cast<Orientation>(value) : Orientation::kUpright;
}

bool swaps_sides(Orientation orientation) { return orientation >= Orientation::kTransposed; }

ImageView stored_view(const ImageView& view, Orientation orientation, std::int64_t width, std::int64_t height) {
  if (!swaps_sides(orientation)) return reversed(view, reversal_of(orientation), width, height);
  return transposed(reversed(view, reversal_of(orientation), height, width));
}

DecodedImage upright(DecodedImage stored, Orientation orientation) {
  if (orientation == Orientation::kUpright) return stored;
  const bool swaps = swaps_sides(orientation);
  const Reversal reversal = reversal_of(orientation);
  DecodedImage image;
  image.width = swaps ? stored.height : stored.width;
  image.height = swaps ? stored.width : stored.height;
  image.view = reversed(swaps ? transposed(stored.view) : stored.view, reversal, image.width, image.height);
  image.pixels.resize(stored.pixels.size());
  std::uint8_t* to = image.pixels.data();
  for (std::int64_t y = 0; y < image.height; ++y) {
    const std::int64_t row = reversal.rows ? image.height - 1 - y : y;
    for (std::int64_t x = 0; x < image.width; ++x) {
      const std::int64_t column = reversal.columns ? image.width - 1 - x : x;
      const std::int64_t at = swaps ? column * stored.width + row : row * stored.width + column;
      to = std::copy_n(stored.pixels.data() + 3 * at, 3, to);
    }
  }
  return image;
}

}  // namespace lockstep::data
