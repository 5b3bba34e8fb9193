// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/base/descriptor.h"

namespace lockstep::train {

/// Reads the lines of a metrics.jsonl as a run writes them. A resume that puts another file in its place goes on: of
/// that one the lines that are newer than all before.
class MetricsFollower {
 public:
  explicit MetricsFollower(std::filesystem::path file) : path_(std::move(file)) {}

  /// The lines since the last call; first those of the last MiB. None where there is no file yet. Half a line waits for
  /// its other half; what is no JSON object is left out.
  std::vector<nlohmann::ordered_json> poll();

 private:
  bool reopen();

  std::filesystem::path path_;
  Descriptor file_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  off_t at_ = 0;              ///< what follows is unread
  off_t known_until_ = 0;     ///< before that a line may be an old one
  std::string half_;          ///< of a line
  bool within_line_ = false;  ///< what is read next begins within a line
  double newest_ = 0.0;       ///< the time of the newest line
};

}  // namespace lockstep::train
