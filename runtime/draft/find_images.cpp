// SPDX-License-Identifier: Apache-2.0
#include "runtime/draft/find_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "runtime/data/image.h"
#include "runtime/data/image_view.h"
#include "runtime/data/stored_file.h"
#include "runtime/draft/files.h"
#include "runtime/tensor/error.h"

namespace lockstep::draft {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLookedAt = 64;  ///< images whose extents are read
constexpr std::uint64_t kMostFileBytes = std::uint64_t{256} << 20;

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (is_folder(entry) && !entry.path().filename().string().starts_with('.')) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

/// Up to `most` of the images that lie below the folder.
std::vector<fs::path> images_below(const fs::path& folder, std::size_t most) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (found.size() == most) break;
    if (is_file(entry) && is_image(entry.path())) found.push_back(entry.path());
  }
  return found;
}

/// Its folders that hold images, each a class.
std::vector<fs::path> classes_in(const fs::path& folder) {
  std::vector<fs::path> classes = folders_in(folder);
  std::erase_if(classes, [](const fs::path& path) { return images_below(path, 1).empty(); });
  return classes;
}

/// The folder, or the one in it where that alone holds folders of classes: train/train/cat.
fs::path innermost(fs::path folder) {
  for (;;) {
    const std::vector<fs::path> classes = classes_in(folder);
    if (classes.size() != 1 || classes_in(classes[0]).empty()) return folder;
    folder = classes[0];
  }
}

std::int64_t shorter_side(const fs::path& image) {
  const std::string content = data::StoredFile(image.string()).read_text(kMostFileBytes);
  std::int64_t side = 0;
  data::decode_image(
      std::as_bytes(std::span(content)), data::ImageFolderOptions{}.max_pixels,
      [&side](std::int64_t width, std::int64_t height) {
        side = std::min(width, height);
        return data::center_view(width, height, 8, 8);
      },
      image.string());
  return side;
}

/// The median of the shorter sides of some images of each class.
std::int64_t usual_side(const fs::path& folder) {
  const std::vector<fs::path> classes = classes_in(folder);
  const std::size_t of_each = std::max<std::size_t>(1, kLookedAt / classes.size());
  std::vector<std::int64_t> sides;
  for (const fs::path& name : classes) {
    if (sides.size() >= kLookedAt) break;
    for (const fs::path& image : images_below(name, of_each)) sides.push_back(shorter_side(image));
  }
  const auto middle = sides.begin() + static_cast<std::ptrdiff_t>(sides.size() / 2);
  std::ranges::nth_element(sides, middle);
  return *middle;
}

FoundData found_in(const fs::path& train, const std::optional<fs::path>& eval) {
  if (const std::vector<fs::path> classes = classes_in(train); classes.size() == 1) {
    throw UsageError(train.string() + " holds images of one class alone, " + classes[0].filename().string(),
                     "Move the images of each class into a folder that has its name.");
  }
  data::ImageFolderOptions options{.folder = train.string()};
  const std::int64_t side = usual_side(train);
  if (side < 256) {
    // Networks halve the extents; small images are taken whole.
    options.size = side >= 64 ? side / 32 * 32 : side;
    options.resize = options.size;
  }
  FoundData found{"images, a folder a class", {.train = options}};
  found.notes.push_back(fmt::format("images are about {} pixels on their shorter side", side));
  if (eval) {
    options.folder = eval->string();
    found.options.eval = options;
  }
  return found;
}

}  // namespace

std::optional<FoundData> find_images(const fs::path& folder) {
  std::optional<fs::path> train, eval;
  int preferred = 0;
  for (const fs::path& part : folders_in(folder)) {
    if (classes_in(part).empty()) continue;
    const int rank = evaluation_rank(part);
    const bool trains = names_training(part);
    if (trains && rank > 0) continue;  // "train_test_split" holds both
    if (rank > 0 && (!eval || rank < preferred)) {
      eval = innermost(part);
      preferred = rank;
    }
    if (trains && !train) train = innermost(part);
  }
  if (train) return found_in(*train, eval);
  const std::vector<fs::path> classes = classes_in(folder);
  // Its classes would be what the images are for: val, test.
  if (classes.size() > 1 && eval) {
    throw UsageError(fmt::format("{} holds folders of classes to evaluate on, as {}, but none to train on",
                                 folder.string(), eval->lexically_relative(folder).string()),
                     "Name the folder of those to train on \"train\".");
  }
  if (classes.size() == 1 && !classes_in(classes[0]).empty()) return find_images(classes[0]);
  if (!classes.empty()) return found_in(folder, std::nullopt);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (is_file(entry) && is_image(entry.path())) {
      throw UsageError(folder.string() + " holds images, but no folder of a class",
                       "Move the images of each class into a folder that has its name.");
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::draft
