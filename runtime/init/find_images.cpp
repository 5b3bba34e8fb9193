// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/files/stored_file.h"
#include "runtime/init/files.h"
#include "runtime/init/find_kinds.h"
#include "runtime/init/image_sides.h"

namespace lockstep::init {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostFileBytes = std::uint64_t{256} << 20;

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

/// Looks at some images of each class. Throws StorageError where none of them can be read.
LookedAt look_at_some(const fs::path& folder) {
  const std::vector<fs::path> classes = classes_in(folder);
  const std::size_t of_each = std::max<std::size_t>(1, kSidesLookedAt / classes.size());
  LookedAt found;
  for (const fs::path& name : classes) {
    if (found.sides.size() + found.errors.size() >= kSidesLookedAt) break;
    for (const fs::path& image : images_below(name, of_each)) {
      const std::string content = StoredFile(image.string()).read_text(kMostFileBytes);
      found.add(std::as_bytes(std::span(content)), image.string());
    }
  }
  require_readable(found);
  return found;
}

FoundData found_in(const fs::path& train, const std::optional<fs::path>& eval) {
  if (const std::vector<fs::path> classes = classes_in(train); classes.size() == 1) {
    throw UsageError(train.string() + " holds images of one class alone, " + classes[0].filename().string(),
                     "Move the images of each class into a folder that has its name.");
  }
  data::ImageFolderOptions options{.folder = train.string()};
  const LookedAt images = look_at_some(train);
  const std::int64_t side = images.median_side();
  take_whole_if_small(side, options);
  FoundData found{"images, a folder a class"};
  found.notes.push_back(note_of_side(side));
  turn_upright(images, options, found.notes);
  found.options.train = options;
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

}  // namespace lockstep::init
