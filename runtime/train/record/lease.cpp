// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/lease.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "runtime/base/blocked_signals.h"
#include "runtime/base/control_groups.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/base/files/storage_calls.h"
#include "runtime/base/process.h"

namespace lockstep::train {

namespace {

/// The processes that see each other by their numbers: those of one boot of a machine and one PID namespace.
std::string this_place() {
  struct stat status {};
  const ino_t numbers = ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
  std::string boot = lockstep::text_of("/proc/sys/kernel/random/boot_id");
  boot.resize(boot.find_last_not_of(" \n") + 1);
  return fmt::format("{}/{}", boot, numbers);
}

std::uint64_t start_of(pid_t pid) {
  const std::optional<ProcessFacts> facts = process_facts(pid);
  return facts ? facts->started : 0;
}

/// This process, and which of its leases.
std::string new_identity() {
  static std::atomic<unsigned> serial{0};
  return fmt::format("{} {} {} {}", this_place(), getpid(), start_of(getpid()), serial++);
}

std::string content_of(int descriptor) {
  std::array<char, 1024> text{};
  const ssize_t count = pread(descriptor, text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
}

/// Opened anew: a network file system then asks its server. Empty where there is no file, nothing where it cannot be
/// told.
std::optional<std::string> content_at(const std::string& path) {
  const CallUnderWay under_way(StorageOperation::kOpen, path);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file) return content_of(file.get());
  if (errno == ENOENT) return std::string();
  return std::nullopt;
}

/// The second line.
std::string identity_in(const std::string& content) {
  std::istringstream lines(content);
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  return line;
}

/// Whether the process is one of those that this one sees, and if so, whether it is there; nothing of others.
std::optional<bool> is_alive(const std::string& identity) {
  std::istringstream parts(identity);
  std::string place;
  pid_t pid = 0;
  std::uint64_t started = 0;
  if (!(parts >> place >> pid >> started) || place != this_place()) return std::nullopt;
  return process_exists(pid) && start_of(pid) == started;
}

}  // namespace

Lease::Lease(std::string path, Times times) : path_(std::move(path)), times_(times), identity_(new_identity()) {}

Lease::~Lease() {
  if (!file_) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  renewing_.join();
  const CallUnderWay under_way(StorageOperation::kWrite, path_);
  if (is_in_place()) unlink(path_.c_str());
}

bool Lease::try_take(const std::string& holder) {
  if (create(holder)) return true;
  if (!is_abandoned()) return false;
  remove_abandoned();
  return create(holder);
}

std::string Lease::holder() const { return seen_.substr(0, seen_.find('\n')); }

bool Lease::create(const std::string& holder) {
  const CallUnderWay under_way(StorageOperation::kOpen, path_);
  Descriptor file(open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file && errno == EEXIST) return false;
  words_ = holder + "\n" + identity_ + "\n";
  const std::string text = words_ + "0\n";
  if (!file || pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    const int error = errno;
    if (file) unlink(path_.c_str());
    throw FileError("cannot make " + path_ + ": " + std::generic_category().message(error),
                    "Check the permissions of the run directory, or choose another --run-dir.", error);
  }
  fdatasync(file.get());
  file_ = std::move(file);
  const BlockedSignals for_the_thread;
  renewing_ = std::thread([this] { renew_on(); });
  return true;
}

bool Lease::is_abandoned() {
  const std::optional<std::string> found = content_at(path_);
  if (!found) return false;
  const std::string& content = *found;
  const Clock::time_point now = Clock::now();
  const std::string identity = identity_in(content);
  const std::optional<bool> alive = is_alive(identity);
  const bool is_known = !seen_.empty() && identity == identity_in(seen_);
  holder_lives_ = alive.value_or(is_known && (holder_lives_ || content != seen_));
  if (content != seen_ || seen_since_ == Clock::time_point()) {
    seen_ = content;
    seen_since_ = now;
  }
  // An empty one was made by a process that was killed before it could write, or that is about to.
  return alive.has_value() ? !*alive : now - seen_since_ >= times_.lapse;
}

void Lease::remove_abandoned() const {
  // Renamed first: of several that do so one succeeds, and sees what it has taken.
  const std::string taken = fmt::format("{}.{}", path_, getpid());
  if (std::rename(path_.c_str(), taken.c_str()) != 0) return;
  // Another one has taken it over meanwhile.
  if (content_at(taken) != seen_ && link(taken.c_str(), path_.c_str()) != 0) {
    spdlog::error("{} has two holders: look for another run there", path_);
  }
  unlink(taken.c_str());
}

void Lease::renew_on() {
  std::unique_lock lock(mutex_);
  for (std::uint64_t renewals = 1; !ended_.wait_for(lock, times_.renewal, [this] { return ends_; }); ++renewals) {
    lock.unlock();
    {
      const CallUnderWay under_way(StorageOperation::kWrite, path_);
      const std::string text = fmt::format("{}{}\n", words_, renewals);
      // One that fails is made up for by the next.
      if (pwrite(file_.get(), text.data(), text.size(), 0) > 0) fdatasync(file_.get());
      if (is_lost()) {
        spdlog::error("{} is another process's now, or gone: two runs may be training there", path_);
        return;
      }
    }
    lock.lock();
  }
}

bool Lease::is_lost() {
  const std::optional<std::string> content = content_at(path_);
  if (!content || identity_in(*content) == identity_) {
    was_gone_ = false;
    return false;
  }
  return !content->empty() || std::exchange(was_gone_, true);
}

bool Lease::is_in_place() const { return identity_in(content_at(path_).value_or("")) == identity_; }

}  // namespace lockstep::train
