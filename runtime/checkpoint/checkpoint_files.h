// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/base/files/durable_file.h"

namespace lockstep::checkpoint {

inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr const char* kStateFile = "state.pb";
inline constexpr const char* kTensorFile = "tensors.safetensors";

/// The files of a checkpoint to read: of a directory, or of a bundle (bundle.h), where they are members of one file.
class CheckpointFiles {
 public:
  /// Throws StorageError for a file that is no bundle.
  explicit CheckpointFiles(std::string path);

  const std::string& path() const { return path_; }
  /// What messages call a file.
  std::string title(const std::string& name) const { return path_ + "/" + name; }
  bool has(const std::string& name) const;
  /// Throws StorageError where it is not there.
  InputFile open(const std::string& name) const;

 private:
  struct Part {
    std::uint64_t begin;
    std::uint64_t size;
  };
  std::string path_;
  bool bundled_ = false;
  std::map<std::string, Part> parts_;  ///< of a bundle
};

}  // namespace lockstep::checkpoint
