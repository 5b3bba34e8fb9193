// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/image_masks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "runtime/base/error.h"
#include "runtime/base/files/stored_file.h"
#include "runtime/base/option_checks.h"
#include "runtime/data/data_digest.h"
#include "runtime/data/formats/content_hash.h"
#include "runtime/data/formats/mask.h"
#include "runtime/data/formats/resample.h"
#include "runtime/data/formats/walk.h"
#include "runtime/data/image_sample.h"
#include "runtime/data/image_view.h"
#include "runtime/data/passed_over.h"

namespace lockstep::data {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostListed = 10;

/// The files below a folder that `takes` is true of, by their paths without the ending; `what` they are. Adds others to
/// `passed`.
std::map<std::string, std::string> files_by_stem(const std::string& folder, bool (*takes)(const fs::path&),
                                                 const char* what, PassedOver& passed) {
  std::map<std::string, std::string> files;
  try {
    walk({folder}, [&](const fs::directory_entry& entry) {
      if (leads_nowhere(entry)) passed.add_broken_link(entry.path().lexically_relative(folder).string());
      if (!entry.is_regular_file() || entry.path().filename().string().starts_with('.')) return;
      const fs::path path = entry.path().lexically_relative(folder);
      if (!takes(path)) return passed.add_file(path.string());
      const auto [other, is_new] = files.emplace((path.parent_path() / path.stem()).string(), path.string());
      if (is_new) return;
      throw StorageError(fmt::format("{}: {} and {} are {} of one name", folder, other->second, path.string(), what),
                         "Pairs are found by the names without their endings: keep one of both.");
    });
  } catch (const fs::filesystem_error& error) {
    throw StorageError("cannot list " + folder + ": " + error.what());
  }
  return files;
}

bool is_image_path(const fs::path& path) { return is_image_extension(path.extension().string()); }

bool is_mask_path(const fs::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".png" || ending == ".PNG";
}

/// "2 images have no mask in FOLDER: a.jpg, b.jpg"; empty for none.
std::string alone(const std::vector<std::string>& names, const char* what, const char* partner,
                  const std::string& folder) {
  if (names.empty()) return "";
  const std::span listed(names.data(), std::min(names.size(), kMostListed));
  const std::string more =
      names.size() > kMostListed ? fmt::format(" and {} more", names.size() - kMostListed) : std::string();
  return fmt::format("{} of the {} have no {} in {}: {}{}", names.size(), what, partner, folder,
                     fmt::join(listed, ", "), more);
}

std::string content_of(const std::string& path) { return StoredFile(path).read_text(kMostImageBytes); }

std::span<const std::byte> bytes_of(const std::string& content) { return std::as_bytes(std::span(content)); }

}  // namespace

FieldProblems problems_of(const ImageMasksOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  check_image_size(options.size, options.resize, checks);
  if (options.classes > 0 && options.target_kind == TargetKind::kNumbers) {
    checks.error("classes", "is for target_kind: CLASSES", {"target_kind"});
  }
  checks.check(options.classes <= 256, "classes", "<= 256, as a mask's values are below it",
               static_cast<double>(options.classes));
  return checks.problems();
}

void complete(ImageMasksOptions& options) {
  if (options.resize == 0) options.resize = options.size;
}

ImageMasksDataset::ImageMasksDataset(const ImageMasksOptions& options) : options_(options) {
  require_none(problems_of(options), "image_masks");
  complete(options_);
  pair_up();
  if (options_.target_kind == TargetKind::kNumbers) return;
  classes_ = options_.classes > 0 ? options_.classes : count_classes();
}

void ImageMasksDataset::pair_up() {
  PassedOver passed;
  const auto images = files_by_stem(options_.images, is_image_path, "images", passed);
  const auto masks = files_by_stem(options_.masks, is_mask_path, "masks", passed);
  remarks_ = passed.remarks();
  std::vector<std::string> without_mask, without_image;
  for (const auto& [stem, image] : images) {
    const auto mask = masks.find(stem);
    if (mask == masks.end()) {
      without_mask.push_back(image);
    } else {
      pairs_.push_back({image, mask->second});
    }
  }
  for (const auto& [stem, mask] : masks) {
    if (!images.contains(stem)) without_image.push_back(mask);
  }
  std::vector<std::string> problems;
  for (std::string text : {alone(without_mask, "images", "mask", options_.masks),
                           alone(without_image, "masks", "image", options_.images)}) {
    if (!text.empty()) problems.push_back(std::move(text));
  }
  if (!problems.empty()) {
    throw StorageError(fmt::format("{}", fmt::join(problems, "; ")),
                       "An image and its mask have the same name but for the ending: photo.jpg and photo.png.");
  }
  if (!pairs_.empty()) return;
  for (const std::string& remark : remarks_) problems.push_back("; " + remark);
  throw StorageError(fmt::format("{}: holds no image{}", options_.images, fmt::join(problems, "")),
                     "Images are files *.jpg, *.jpeg, *.png and *.webp.");
}

std::int64_t ImageMasksDataset::count_classes() const {
  std::int64_t highest = -1;
  bool ignores = false;
  for (const Pair& pair : pairs_) {
    const std::string path = mask_path(pair);
    for (const std::uint8_t value : decode_mask(bytes_of(content_of(path)), options_.max_pixels, path).values) {
      if (value == options_.ignore) {
        ignores = true;
      } else {
        highest = std::max<std::int64_t>(highest, value);
      }
    }
  }
  if (highest > 0 || !ignores) return highest + 1;
  throw StorageError(
      fmt::format("{}: the masks hold no class but 0, and {}, which is ignored", options_.masks, options_.ignore),
      "Masks of 0 and 255 show one thing: target_kind: NUMBERS learns it. Otherwise give the number of classes.");
}

Description ImageMasksDataset::describe() const {
  Description description = data::describe(*this);
  description.remarks = remarks_;
  return description;
}

void ImageMasksDataset::get(const SampleKey& key, const Sample& sample) const {
  const Pair& pair = pairs_[static_cast<std::size_t>(key.index)];
  const auto from = [&key](const std::string& path) { return fmt::format("{} (sample {})", path, key.index); };
  const std::string mask_name = from(mask_path(pair)), image_name = from(image_path(pair));
  const MaskImage mask = decode_mask(bytes_of(content_of(mask_path(pair))), options_.max_pixels, mask_name);
  ImageView view;
  const auto choose = [&](std::int64_t width, std::int64_t height) {
    if (width != mask.width || height != mask.height) {
      throw StorageError(fmt::format("{} has {} x {} pixels, but its mask {} x {}", image_name, width, height,
                                     mask.width, mask.height),
                         "A mask has the pixels of its image.");
    }
    view = options_.random_resized_crop
               ? random_view(width, height, *options_.random_resized_crop, options_.size, key)
               : window_view(width, height, options_.resize, options_.size, options_.place, key);
    return view;
  };
  const Turning turning = options_.exif_orientation ? Turning::kUpright : Turning::kAsStored;
  const std::string content = content_of(image_path(pair));
  resample(decode_image(bytes_of(content), options_.max_pixels, choose, image_name, turning), sample.values);
  write_mask(mask, view, mask_name, sample);
}

void ImageMasksDataset::write_mask(const MaskImage& mask, const ImageView& view, const std::string& from,
                                   const Sample& sample) const {
  std::vector<std::uint8_t> values(static_cast<std::size_t>(options_.size * options_.size));
  take_nearest(mask, view, values);
  const std::uint8_t highest = *std::ranges::max_element(mask.values);
  if (classes_ == 0) {
    const std::uint8_t full = mask.is_palette ? 1 : mask.full;
    // Of 8 bits, a mask of 0 and 1 would be as good as empty.
    if (highest > full || (highest == 1 && full > 1)) {
      throw StorageError(fmt::format("{}: the mask holds {}, where {} stands for all", from, highest, full),
                         "Masks of classes are those of target_kind: CLASSES.");
    }
    std::ranges::transform(values, sample.target.begin(),
                           [full](std::uint8_t value) { return static_cast<float>(value) / static_cast<float>(full); });
    return;
  }
  std::int64_t* label = sample.labels.data();
  for (const std::uint8_t value : values) {
    if (value != options_.ignore && value >= classes_) {
      throw StorageError(fmt::format("{}: the mask holds {}, which is none of the {} classes", from, value, classes_),
                         "Check target_kind, ignore and the number of classes.");
    }
    *label++ = value == options_.ignore ? kIgnoredLabel : value;
  }
}

void ImageMasksDataset::add_content(std::int64_t index, Hash128& hash) const {
  add_sample_of_file(options_.images + "/" + pairs_[static_cast<std::size_t>(index)].image, 2, hash);
}

void ImageMasksDataset::add_to_digest(DataHashes& hashes) const {
  std::vector<std::string> images, masks;
  for (const Pair& pair : pairs_) {
    images.push_back(image_path(pair));
    masks.push_back(mask_path(pair));
  }
  add_files(masks, hashes.labels);
  add_files(images, hashes.content);
}

std::int64_t count_mask_classes(const ImageMasksOptions& options) { return ImageMasksDataset(options).classes(); }

Targets ImageMasksKind::targets(const Options& options) {
  return options.target_kind == TargetKind::kNumbers ? Targets::kMasks : Targets::kClasses;
}

}  // namespace lockstep::data
