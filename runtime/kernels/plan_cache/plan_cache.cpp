// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/plan_cache/plan_cache.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runtime/base/error.h"
#include "runtime/base/hash.h"

namespace lockstep::kernels {

namespace {

// A file is these four lines: what it is, the key, the value, and a checksum of the three.
constexpr const char* kFormat = "lockstep plan 1";

/// The most bytes of a value, so that a file of any length is not read whole.
constexpr std::size_t kLongestValue = 4096;

std::string file_of(const std::string& key, const std::string& value) {
  const std::string body = fmt::format("{}\n{}\n{}\n", kFormat, key, value);
  return body + hash128_of(body) + "\n";
}

enum class State { kAbsent, kUnusable, kWhole };

struct Entry {
  State state = State::kAbsent;
  std::string value;
};

Entry read(const std::string& path, const std::string& key) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {errno == ENOENT || errno == ENOTDIR ? State::kAbsent : State::kUnusable, {}};
  std::string text(file_of(key, "").size() + kLongestValue, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));  // throws nothing, whatever is there
  text.resize(static_cast<std::size_t>(file.gcount()));
  const std::string head = fmt::format("{}\n{}\n", kFormat, key);
  if (!text.starts_with(head)) return {State::kUnusable, {}};
  const std::string value = text.substr(head.size(), text.find('\n', head.size()) - head.size());
  if (text != file_of(key, value)) return {State::kUnusable, {}};
  return {State::kWhole, value};
}

/// A file of its own beside its later place; removed unless it was renamed by then.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : name_(path + ".XXXXXX"), descriptor_(::mkstemp(name_.data())) {}
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!name_.empty()) ::unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  /// Others may read it: a folder can serve a team. Not synced: what a crash leaves of it is recognised.
  bool write(const std::string& text) {
    if (descriptor_ < 0) return false;
    const bool written = ::fchmod(descriptor_, 0644) == 0 &&
                         ::write(descriptor_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    const bool closed = ::close(descriptor_) == 0;
    descriptor_ = -1;
    return written && closed;
  }
  /// Links the file to `path` too, unless a file is there. Returns false where it failed; errno says why.
  bool link_to(const std::string& path) const { return ::link(name_.c_str(), path.c_str()) == 0; }
  /// Puts it in the place of whatever is there.
  bool rename_to(const std::string& path) {
    if (::rename(name_.c_str(), path.c_str()) != 0) return false;
    name_.clear();
    return true;
  }

 private:
  std::string name_;
  int descriptor_;
};

}  // namespace

std::string PlanCache::path_of(const std::string& key) const { return folder_ + "/" + hash128_of(key); }

std::optional<std::string> PlanCache::find(const std::string& key) const {
  if (folder_.empty()) return {};
  const Entry entry = read(path_of(key), key);
  if (entry.state == State::kWhole) return entry.value;
  if (entry.state == State::kUnusable) {
    spdlog::warn("ignoring {}: it is damaged, or holds something else than the plan of \"{}\"", path_of(key), key);
  }
  return {};
}

std::optional<std::string> PlanCache::keep(const std::string& key, const std::string& value) const {
  if ((key + value).find('\n') != std::string::npos) {
    throw UsageError("a plan's key and value are one line each, found \"" + key + "\" and \"" + value + "\"");
  }
  if (value.size() > kLongestValue) throw UsageError("a plan's value has at most 4096 bytes");
  if (folder_.empty()) return {};
  const std::string path = path_of(key);
  if (const Entry entry = read(path, key); entry.state == State::kWhole) return entry.value;
  std::error_code ignored;  // shows when the file is made
  std::filesystem::create_directories(folder_, ignored);
  TemporaryFile file(path);
  if (!file.write(file_of(key, value))) {
    spdlog::warn("cannot keep a plan in {}: {}", folder_, std::strerror(errno));
    return {};
  }
  if (file.link_to(path)) return value;
  // Somebody was first, or left something unusable; or there are no links on this file system.
  if (const Entry entry = read(path, key); entry.state == State::kWhole) return entry.value;
  if (file.rename_to(path)) return value;
  spdlog::warn("cannot keep a plan in {}: {}", folder_, std::strerror(errno));
  return {};
}

}  // namespace lockstep::kernels
