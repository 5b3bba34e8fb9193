// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>

namespace lockstep {

/// A directory of the test's own.
class Folder {
 public:
  Folder() {
    std::string path = std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX";
    path_ = mkdtemp(path.data());
  }
  ~Folder() {
    // Ranks whose supervisor was killed may still write here while they end.
    std::error_code failed;
    for (int attempt = 0; attempt < 100; ++attempt) {
      std::filesystem::remove_all(path_, failed);
      if (!failed) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep
