// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/checkpoint_files.h"

#include <filesystem>

#include "runtime/base/files/stored_file.h"
#include "runtime/data/formats/tar_index.h"

namespace lockstep::checkpoint {

namespace {

/// A bundle has a handful of members: a file with more is another archive.
constexpr std::size_t kMostMembers = 64;

}  // namespace

CheckpointFiles::CheckpointFiles(std::string path) : path_(std::move(path)) {
  std::error_code unreachable;  // opening it says why
  bundled_ = std::filesystem::is_regular_file(path_, unreachable);
  if (!bundled_) return;
  data::read_tar_index(StoredFile(path_), [this](const data::TarMember& member, const auto&) {
    // Names are looked up here and never become paths.
    if (!parts_.emplace(member.name, Part{member.offset, member.size}).second) {
      throw StorageError(path_ + " is no bundle: it holds \"" + member.name + "\" twice");
    }
    if (parts_.size() > kMostMembers) throw StorageError(path_ + " is no bundle: it holds too many files");
  });
  if (!has(kManifestFile)) {
    throw StorageError(path_ + " is no bundle: it holds no " + kManifestFile,
                       "A bundle is what `lockstep export RUN --bundle FILE.lockstep` writes.");
  }
}

bool CheckpointFiles::has(const std::string& name) const {
  if (bundled_) return parts_.contains(name);
  std::error_code unreachable;  // opening it says why
  return std::filesystem::exists(title(name), unreachable) || unreachable;
}

InputFile CheckpointFiles::open(const std::string& name) const {
  if (!bundled_) return InputFile(title(name));
  const auto found = parts_.find(name);
  if (found == parts_.end()) throw StorageError(path_ + " is damaged: it holds no " + name);
  return InputFile(path_, found->second.begin, found->second.size);
}

}  // namespace lockstep::checkpoint
