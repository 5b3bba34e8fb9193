// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/run_lock.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/base/files/retry.h"
#include "runtime/base/files/storage_calls.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/base/host_name.h"
#include "runtime/base/process.h"

namespace lockstep::train {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPoll{20};
/// A wait that is shorter than this is not reported.
constexpr milliseconds kWorthSaying{1000};

/// The text of the file, which names the run that holds it to others: "process 4242 on gpu3 since 2026-11-21 20:15:00
/// UTC".
std::string describe_holder() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> since{};
  std::strftime(since.data(), since.size(), "%Y-%m-%d %H:%M:%S UTC", &utc);
  return "process " + std::to_string(getpid()) + " on " + host_name() + " since " + since.data();
}

/// Empty where it has not been written yet.
std::string read_holder(int descriptor) {
  std::array<char, 512> text{};
  const ssize_t count = pread(descriptor, text.data(), text.size(), 0);
  const std::string found(text.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return found.substr(0, found.find('\n'));
}

/// Whether the process of this number is one that was there when the file was written: numbers are used again.
bool lives_since(pid_t pid, const struct stat& written) {
  const std::optional<ProcessFacts> facts = process_facts(pid);
  if (!facts) return false;
  timespec now{};
  timespec since_boot{};
  clock_gettime(CLOCK_REALTIME, &now);
  clock_gettime(CLOCK_BOOTTIME, &since_boot);
  constexpr double kClockStep = 2.0;
  const double age = static_cast<double>(since_boot.tv_sec) -
                     static_cast<double>(facts->started) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return age + kClockStep >= static_cast<double>(now.tv_sec - written.st_mtim.tv_sec);
}

/// Makes the directory and its name durable: a power failure that loses the name loses every checkpoint below it.
void make_run_directory(const std::filesystem::path& path) {
  try {
    with_retries({}, [&] {
      make_directories(path.string());
      // Also where it is there already: the process that made it may have been killed before it synced.
      sync_directory((path / "..").lexically_normal().string());
    });
  } catch (const FileError& error) {
    if (error.transient()) throw;
    // Opening the lock says why there is no directory. A parent directory that cannot be read is not ours to sync.
  } catch (const std::filesystem::filesystem_error&) {
    // The same.
  }
}

}  // namespace

Holder holder_of(const std::filesystem::path& run_dir) {
  const Descriptor file(open((run_dir / ".lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat written {};
  if (!file || fstat(file.get(), &written) != 0) return Holder::kNone;
  int pid = 0;
  std::array<char, 256> host{};
  if (std::sscanf(read_holder(file.get()).c_str(), "process %d on %255s since", &pid, host.data()) != 2) {
    return Holder::kNone;
  }
  if (host.data() != host_name()) return Holder::kElsewhere;
  return lives_since(pid, written) ? Holder::kHere : Holder::kNone;
}

RunLock::RunLock(const std::filesystem::path& run_dir, milliseconds patience, Flock lock, Lease::Times lease)
    : path_((run_dir / ".lock").string()), flock_(lock == nullptr ? flock : lock), times_(lease) {
  make_run_directory(run_dir);
  file_ = with_retries({}, [&] {
    const CallUnderWay under_way(StorageOperation::kOpen, path_);
    // A link leads to somebody else's file, and this empties the file.
    Descriptor file(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (file) return file;
    if (errno == ELOOP) throw StorageError(path_ + " is a symbolic link", "Remove it, or choose another --run-dir.");
    throw FileError("cannot make " + path_ + ": " + std::generic_category().message(errno),
                    "Check the permissions of the run directory, or choose another --run-dir.", errno);
  });
  const std::string holder = describe_holder();
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (bool said = patience < kWorthSaying; is_busy(holder); said = true) {
    const std::string other = lease_ ? lease_->holder() : read_holder(file_.get());
    const std::string who = run_dir.string() + (other.empty() ? "" : ": " + other);
    const milliseconds longest = lease_ ? std::max(patience, times_.lapse) : patience;
    if (!said) {
      spdlog::warn("another run is training in {}; waiting up to {} s for its end", who,
                   std::chrono::duration_cast<std::chrono::seconds>(longest).count());
    }
    // One elsewhere may have ended long ago; it takes the lapse of its lease to see.
    const bool may_have_ended = patience.count() > 0 && lease_ && !lease_->holder_lives();
    if (!may_have_ended && std::chrono::steady_clock::now() > deadline) {
      throw UsageError("another run is training in " + who,
                       "Wait for its end or stop it, or choose another --run-dir.");
    }
    std::this_thread::sleep_for(kPoll);
  }
  const std::string text = holder + "\n";
  {
    const CallUnderWay under_way(StorageOperation::kWrite, path_);
    // A process that waits for the lock can do without these words.
    [[maybe_unused]] const bool told =
        ftruncate(file_.get(), 0) == 0 && pwrite(file_.get(), text.data(), text.size(), 0) > 0;
  }
  remove_abandoned_files(run_dir);
}

bool RunLock::is_busy(const std::string& holder) {
  if (lease_) return !lease_->try_take(holder);
  int error = 0;
  {
    const CallUnderWay under_way(StorageOperation::kOpen, path_);
    if (flock_(file_.get(), LOCK_EX | LOCK_NB) == 0) return false;
    error = errno;
  }
  if (error == EWOULDBLOCK || error == EINTR) return true;
  const std::string path = (std::filesystem::path(path_).parent_path() / ".lease").string();
  spdlog::warn(
      "there are no locks (flock) where {} is: {}. {} keeps other runs out: a file that this one renews every "
      "{} s",
      path_, std::generic_category().message(error), path,
      std::chrono::duration_cast<std::chrono::seconds>(times_.renewal).count());
  lease_.emplace(path, times_);
  return !lease_->try_take(holder);
}

RunLock::~RunLock() {
  const CallUnderWay under_way(StorageOperation::kWrite, path_);
  [[maybe_unused]] const bool forgotten = ftruncate(file_.get(), 0) == 0;
}

}  // namespace lockstep::train
