// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/image_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/base/files/stored_file.h"
#include "runtime/data/data_digest.h"
#include "runtime/data/formats/content_hash.h"
#include "runtime/data/formats/walk.h"
#include "runtime/data/image_sample.h"
#include "runtime/data/passed_over.h"
#include "runtime/data/preparation.h"

namespace lockstep::data {

namespace {

namespace fs = std::filesystem;

// The digest reads all files of a folder of up to kSmallFolder, and kReadOfLarge of a larger one, up to kMostReadBytes
// of each. On a disk that seeks, a file takes some 20 ms.
constexpr std::uint64_t kSmallFolder = 256;
constexpr std::uint64_t kReadOfLarge = 32;
constexpr std::uint64_t kMostReadBytes = std::uint64_t{1} << 20;

/// The images below `folder`/`name`, by their paths below `folder`. Adds others to `passed`.
std::vector<std::string> list_images(const fs::path& folder, const std::string& name, PassedOver& passed) {
  std::vector<std::string> files;
  walk({folder, folder / name}, [&](const fs::directory_entry& entry) {
    std::string path = entry.path().lexically_relative(folder).string();
    if (leads_nowhere(entry)) {
      passed.add_broken_link(path);
    } else if (!entry.is_regular_file()) {
      return;
    } else if (is_image_extension(entry.path().extension().string())) {
      files.push_back(std::move(path));
    } else {
      passed.add_file(path);
    }
  });
  std::ranges::sort(files);
  return files;
}

template <class List>
auto listing(const std::string& folder, const List& list) {
  try {
    return list();
  } catch (const fs::filesystem_error& error) {
    throw StorageError("cannot list " + folder + ": " + error.what());
  }
}

/// The images and broken links that lie in the folder itself.
void add_outside_classes(const fs::path& folder, PassedOver& passed) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (leads_nowhere(entry)) passed.add_broken_link(name);
    if (!entry.is_regular_file()) continue;
    if (is_image_extension(entry.path().extension().string())) {
      passed.add_outside_classes(name);
    } else {
      passed.add_file(name);
    }
  }
}

}  // namespace

std::vector<std::string> list_classes(const std::string& folder) {
  std::vector<std::string> names = listing(folder, [&] {
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      const bool is_class = entry.is_directory() && !name.starts_with('.') && !fs::equivalent(entry.path(), folder);
      if (is_class) found.push_back(name);
    }
    return found;
  });
  if (names.empty()) throw StorageError(folder + ": holds no folders", "Give each class a folder of its images there.");
  std::ranges::sort(names);
  return names;
}

ImageFolderDataset::ImageFolderDataset(const ImageFolderOptions& options) : options_(options) {
  require_none(problems_of(options), "image_folder");
  const std::vector<std::string> found = list_classes(options_.folder);
  PassedOver passed;
  class_names_ = options.class_names.empty() ? found : options.class_names;
  for (const std::string& name : found) {
    const auto place = std::ranges::find(class_names_, name);
    if (place == class_names_.end()) {
      throw StorageError(fmt::format("{}: the folder \"{}\" is none of the {} classes of the training data",
                                     options_.folder, name, class_names_.size()));
    }
    for (std::string& file : listing(options_.folder, [&] { return list_images(options_.folder, name, passed); })) {
      files_.push_back({std::move(file), place - class_names_.begin()});
    }
  }
  listing(options_.folder, [&] { return add_outside_classes(options_.folder, passed); });
  remarks_ = passed.remarks();
  if (files_.empty()) {
    throw StorageError(fmt::format("{}: its folders hold no image{}{}", options_.folder, remarks_.empty() ? "" : "; ",
                                   fmt::join(remarks_, "; ")),
                       "Images are files *.jpg, *.jpeg, *.png and *.webp.");
  }
}

Description ImageFolderDataset::describe() const {
  Description description = data::describe(*this);
  for (const File& file : files_) description.labels.push_back(file.label);
  description.remarks = remarks_;
  return description;
}

TargetSummary ImageFolderDataset::target_summary() const {
  std::vector<std::int64_t> labels;
  for (const File& file : files_) labels.push_back(file.label);
  return {.common_class = most_common(labels)};
}

void ImageFolderDataset::get(const SampleKey& key, const Sample& sample) const {
  const File& file = files_[static_cast<std::size_t>(key.index)];
  const std::string path = options_.folder + "/" + file.path;
  const std::string content = StoredFile(path).read_text(kMostImageBytes);
  write_image(std::as_bytes(std::span(content)), crop_of(options_), key, fmt::format("{} (sample {})", path, key.index),
              sample.values);
  sample.labels[0] = file.label;
}

void ImageFolderDataset::add_to_preparation(Preparation& preparation) const { preparation.class_names = class_names_; }

void ImageFolderDataset::add_to_digest(DataHashes& hashes) const {
  for (const std::string& name : class_names_) hashes.labels.update(name + '\0');
  for (const File& file : files_) {
    hashes.labels.update(std::as_bytes(std::span(&file.label, 1)));
    hashes.content.update(file.path + '\0');
  }
  const std::uint64_t most = files_.size() <= kSmallFolder ? kSmallFolder : kReadOfLarge;
  for (const std::uint64_t index : spread(files_.size(), most)) {
    add_file(options_.folder + "/" + files_[index].path, kMostReadBytes, hashes.content);
  }
}

void ImageFolderDataset::add_content(std::int64_t index, Hash128& hash) const {
  add_sample_of_file(options_.folder + "/" + files_[static_cast<std::size_t>(index)].path, 2, hash);
}

}  // namespace lockstep::data
