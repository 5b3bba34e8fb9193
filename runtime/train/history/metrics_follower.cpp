// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/metrics_follower.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "runtime/base/json_text.h"

namespace lockstep::train {

using Json = nlohmann::ordered_json;

namespace {

constexpr off_t kFirst = off_t{1} << 20;
constexpr std::size_t kAtOnce = std::size_t{1} << 20;
/// More without a line's end is no line of metrics.
constexpr std::size_t kLongestLine = std::size_t{1} << 20;

}  // namespace

/// Whether there is a file to read.
bool MetricsFollower::reopen() {
  struct stat there {};
  if (stat(path_.c_str(), &there) != 0 || !S_ISREG(there.st_mode)) return static_cast<bool>(file_);
  if (file_ && there.st_dev == device_ && there.st_ino == inode_ && there.st_size >= at_) return true;
  Descriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || fstat(file.get(), &there) != 0) return static_cast<bool>(file_);
  file_ = std::move(file);
  device_ = there.st_dev;
  inode_ = there.st_ino;
  known_until_ = there.st_size;
  at_ = std::max<off_t>(there.st_size - kFirst, 0);
  within_line_ = at_ > 0;
  half_.clear();
  return true;
}

std::vector<Json> MetricsFollower::poll() {
  std::vector<Json> lines;
  if (!reopen()) return lines;
  for (;;) {
    std::string bytes(kAtOnce, '\0');
    const ssize_t count = pread(file_.get(), bytes.data(), bytes.size(), at_);
    if (count <= 0) return lines;
    bytes.resize(static_cast<std::size_t>(count));
    const bool is_old = at_ < known_until_ && newest_ > 0;
    at_ += count;
    half_ += bytes;
    std::size_t begin = 0;
    const double newest_before = newest_;
    for (std::size_t end = half_.find('\n'); end != std::string::npos; end = half_.find('\n', begin)) {
      const std::string_view text = std::string_view(half_).substr(begin, end - begin);
      begin = end + 1;
      if (std::exchange(within_line_, false)) continue;
      Json line = parse_ordered_json(text);
      const Json& time = field_of(line, "time");
      if (!time.is_number()) continue;
      if (is_old && time.get<double>() <= newest_before) continue;
      newest_ = std::max(newest_, time.get<double>());
      lines.push_back(std::move(line));
    }
    half_.erase(0, begin);
    if (half_.size() > kLongestLine) {
      half_.clear();
      within_line_ = true;
    }
  }
}

}  // namespace lockstep::train
