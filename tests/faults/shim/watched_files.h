// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>

namespace lockstep::faults {

/// Which descriptors of this process lead to files of the watched folder, and under which paths they were opened.
class WatchedFiles {
 public:
  /// `folder` is an absolute path; empty: nothing is watched.
  explicit WatchedFiles(std::string folder);

  /// The path below the folder ("." for itself), or an empty text where `path` leads elsewhere.
  std::string below(const char* path) const;
  /// The same of `path` as seen from the folder that `directory` was opened for.
  std::string below(int directory, const char* path) const;
  /// The same of an open file.
  std::string of(int descriptor) const;

  void opened(int descriptor, const std::string& path);
  void closed(int descriptor);

 private:
  static constexpr std::size_t kMost = 4096;

  std::string folder_;
  std::array<std::atomic<bool>, kMost> watched_{};  ///< so that other files cost no lock
  mutable std::mutex mutex_;
  std::array<std::string, kMost> paths_;
};

/// Numbers of processes and times of start taken out of a path, so that it is the same in each run:
/// "step-00000002.tmp-*/state.pb".
std::string stable_name(const std::string& path);

}  // namespace lockstep::faults
