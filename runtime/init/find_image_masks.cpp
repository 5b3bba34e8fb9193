// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/files/stored_file.h"
#include "runtime/data/formats/mask.h"
#include "runtime/data/formats/orientation.h"
#include "runtime/data/image_masks.h"
#include "runtime/init/files.h"
#include "runtime/init/find_kinds.h"
#include "runtime/init/image_sides.h"
#include "runtime/init/paired_folders.h"

namespace lockstep::init {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostMaskBytes = std::uint64_t{256} << 20;
constexpr std::int64_t kLargestSize = 256;

/// Files below the folder that `takes` is true of, by their paths without the ending.
std::map<std::string, fs::path> by_stem(const fs::path& folder, bool (*takes)(const fs::path&)) {
  std::map<std::string, fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path path = entry.path().lexically_relative(folder);
    if (is_file(entry) && !path.filename().string().starts_with('.') && takes(path)) {
      files.emplace((path.parent_path() / path.stem()).string(), entry.path());
    }
  }
  return files;
}

bool is_png(const fs::path& path) { return lower(path.extension().string()) == ".png"; }

std::string read_file(const fs::path& path) { return StoredFile(path.string()).read_text(kMostMaskBytes); }

data::MaskImage read_mask(const fs::path& path) {
  const std::string content = read_file(path);
  return data::decode_mask(std::as_bytes(std::span(content)), data::ImageMasksOptions().max_pixels, path.string());
}

/// Whether an image has a mask of its name there: classes named so would not.
bool are_image_and_mask(const PairedFolders& pair) {
  const auto images = by_stem(pair.images, is_image), masks = by_stem(pair.masks, is_png);
  return std::ranges::any_of(images, [&](const auto& image) { return masks.contains(image.first); });
}

/// What some images and their masks tell of all.
struct Pairs {
  LookedAt images;
  std::array<bool, 256> values{};  ///< that masks hold
  bool palette = false;
  std::int64_t turned_masks = 0;  ///< masks of turned images that have the extents of the upright ones
  std::int64_t stored_masks = 0;  ///< and of the stored ones; of those alone that differ
};

void add_pair(const fs::path& image, const fs::path& mask_path, Pairs& pairs) {
  const std::string content = read_file(image);
  const auto bytes = std::as_bytes(std::span(content));
  pairs.images.add(bytes, image.string());
  try {
    const data::MaskImage mask = read_mask(mask_path);
    for (const std::uint8_t value : mask.values) pairs.values[value] = true;
    pairs.palette = pairs.palette || mask.is_palette;
    if (!data::swaps_sides(data::orientation_of(bytes))) return;
    const auto choose = [&](std::int64_t width, std::int64_t height) {
      if (width != height) ++(mask.width == height && mask.height == width ? pairs.turned_masks : pairs.stored_masks);
      return data::ImageView{0, 0, 1, 1, {0, 0, 1, 1}, 1};
    };
    data::decode_image(bytes, data::ImageMasksOptions().max_pixels, choose, image.string());
  } catch (const StorageError& error) {
    pairs.images.errors.emplace_back(error.what());
  }
}

Pairs look_at_pairs(const PairedFolders& folders) {
  const auto images = by_stem(folders.images, is_image), masks = by_stem(folders.masks, is_png);
  Pairs pairs;
  std::size_t left = kSidesLookedAt;
  for (const auto& [stem, image] : images) {
    const auto mask = masks.find(stem);
    if (mask == masks.end()) continue;
    if (left-- == 0) break;
    add_pair(image, mask->second, pairs);
  }
  require_readable(pairs.images);
  return pairs;
}

/// The highest class + 1 of all masks that can be read; look_for_damage() says which cannot.
std::int64_t count_classes(const PairedFolders& folders, std::int64_t ignored) {
  std::int64_t highest = 0;
  for (const auto& [stem, path] : by_stem(folders.masks, is_png)) {
    try {
      for (const std::uint8_t value : read_mask(path).values) {
        if (value != ignored) highest = std::max<std::int64_t>(highest, value);
      }
    } catch (const StorageError&) {
      continue;
    }
  }
  return highest + 1;
}

/// Whether masks are 0 and 255 alone: one thing.
bool show_one_thing(const Pairs& pairs) {
  const auto others = std::span(pairs.values).subspan(1, 254);
  return !pairs.palette && pairs.values[255] && std::ranges::none_of(others, [](bool found) { return found; });
}

}  // namespace

std::optional<FoundData> find_image_masks(const fs::path& folder) {
  const auto folders = find_paired_folders(folder, are_image_and_mask);
  if (!folders) return std::nullopt;
  const Pairs pairs = look_at_pairs(folders->train);
  FoundData found{"images and their masks"};
  data::ImageMasksOptions options{.images = folders->train.images.string(), .masks = folders->train.masks.string()};
  const std::int64_t side = pairs.images.median_side();
  options.size = side >= 32 ? std::min(side, kLargestSize) / 32 * 32 : side;
  found.notes.push_back(note_of_side(side));
  if (pairs.turned_masks > 0 && pairs.stored_masks == 0) turn_upright(pairs.images, options, found.notes);
  found.masks = show_one_thing(pairs);
  if (found.masks) {
    options.target_kind = data::TargetKind::kNumbers;
    found.notes.emplace_back("masks hold 0 and 255: one thing is to be found");
  } else {
    options.classes = count_classes(folders->train, options.ignore);
    if (pairs.values[255]) found.notes.emplace_back("pixels of 255 in the masks count for nothing");
  }
  found.options.train = options;
  if (folders->eval) {
    options.images = folders->eval->images.string();
    options.masks = folders->eval->masks.string();
    found.options.eval = options;
  }
  return found;
}

}  // namespace lockstep::init
