// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/status_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <system_error>

#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"
#include "runtime/base/process.h"

namespace lockstep::train {

/// A rank's line of the file, in a cache line of its own: ranks write without disturbing each other.
struct alignas(64) StatusLine {
  std::atomic<std::int64_t> pid;
  std::atomic<std::uint64_t> step;
  std::atomic<RankPhase> phase;
  std::atomic<std::uint32_t> beats;
  std::atomic<std::uint64_t> started;
  std::atomic<std::int32_t> code_and_one;  // 0: it has not ended
};

namespace {

/// The file's last line is the launcher's.
struct alignas(64) LauncherLine {
  std::atomic<std::int32_t> columns;
};
static_assert(sizeof(LauncherLine) == sizeof(StatusLine));
static_assert(sizeof(StatusLine) == 64 && std::atomic<RankPhase>::is_always_lock_free);

constexpr std::array<const char*, 12> kPhases{"before the first step",
                                              "before the first step",
                                              "before the first step",
                                              "start-up",
                                              "forward",
                                              "backward",
                                              "update",
                                              "checkpoint",
                                              "evaluation",
                                              "done",
                                              "failed",
                                              "before the first step"};

StatusLine* map(const Descriptor& file, std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return memory == MAP_FAILED ? nullptr : static_cast<StatusLine*>(memory);
}

StorageError cannot(const char* what, const std::filesystem::path& path, int error) {
  return StorageError("cannot " + std::string(what) + " the ranks' status board " + path.string() + ": " +
                          std::generic_category().message(error),
                      "Check the space and the permissions there.");
}

}  // namespace

struct StatusBoard::Mapping {
  StatusLine* lines;
  int ranks;
  std::int64_t pid = getpid();
  std::uint64_t started = process_facts(getpid()).value_or(ProcessFacts{}).started;

  Mapping(StatusLine* memory, int count) : lines(memory), ranks(count) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { munmap(lines, (static_cast<std::size_t>(ranks) + 1) * sizeof(StatusLine)); }

  LauncherLine& launcher() const { return *reinterpret_cast<LauncherLine*>(lines + ranks); }
};

std::shared_ptr<StatusBoard::Mapping> StatusBoard::open_board(const char* path) {
  const Descriptor file(open(path, O_RDWR | O_CLOEXEC));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0 || status.st_size < static_cast<off_t>(2 * sizeof(StatusLine)))
    return nullptr;
  const std::size_t count = static_cast<std::size_t>(status.st_size) / sizeof(StatusLine);
  StatusLine* const lines = map(file, count * sizeof(StatusLine));
  return lines == nullptr ? nullptr : std::make_shared<Mapping>(lines, static_cast<int>(count) - 1);
}

StatusBoard StatusBoard::create(const std::filesystem::path& path, int ranks) {
  const Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) throw cannot("make", path, errno);
  const std::size_t bytes = (static_cast<std::size_t>(ranks) + 1) * sizeof(StatusLine);
  // Not ftruncate: storing into a hole of a full disk would be a SIGBUS.
  int error = posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  StatusLine* lines = error == 0 ? map(file, bytes) : nullptr;
  if (error == 0 && lines == nullptr) error = errno;
  if (error != 0) throw cannot("make", path, error);
  StatusBoard board;
  board.mapping_ = std::make_shared<Mapping>(lines, ranks);
  return board;
}

StatusBoard StatusBoard::from_environment() {
  static std::mutex mutex;
  static std::weak_ptr<Mapping> latest;
  static std::string latest_path;
  StatusBoard board;
  const char* path = std::getenv("LOCKSTEP_STATUS_BOARD");
  if (path == nullptr) return board;
  const std::lock_guard lock(mutex);
  if (latest_path == path) board.mapping_ = latest.lock();
  // Not that of the process which this one is a fork of.
  if (board.mapping_ && board.mapping_->pid == getpid()) return board;
  board.mapping_ = open_board(path);
  latest = board.mapping_;
  latest_path = path;
  return board;
}

void StatusBoard::set(int rank, RankPhase phase, std::uint64_t step) const {
  if (rank < 0 || rank >= ranks()) return;
  StatusLine& line = mapping_->lines[rank];
  line.step.store(step, std::memory_order_relaxed);
  line.phase.store(phase, std::memory_order_relaxed);
  line.started.store(mapping_->started, std::memory_order_relaxed);
  line.pid.store(mapping_->pid, std::memory_order_release);
}

StatusBoard::Entry StatusBoard::get(int rank) const {
  if (rank < 0 || rank >= ranks()) return {};
  const StatusLine& line = mapping_->lines[rank];
  Entry entry;
  entry.pid = line.pid.load(std::memory_order_acquire);
  entry.step = line.step.load(std::memory_order_relaxed);
  entry.phase = line.phase.load(std::memory_order_relaxed);
  entry.started = line.started.load(std::memory_order_relaxed);
  entry.beats = line.beats.load(std::memory_order_relaxed);
  entry.exit_code = line.code_and_one.load(std::memory_order_relaxed) - 1;
  return entry;
}

void StatusBoard::beat(int rank) const {
  if (rank < 0 || rank >= ranks()) return;
  mapping_->lines[rank].beats.fetch_add(1, std::memory_order_relaxed);
}

void StatusBoard::set_exit_code(int rank, int code) const {
  if (rank < 0 || rank >= ranks()) return;
  mapping_->lines[rank].code_and_one.store(code + 1, std::memory_order_relaxed);
}

void StatusBoard::set_columns(int columns) const {
  if (mapping_) mapping_->launcher().columns.store(columns, std::memory_order_relaxed);
}

int StatusBoard::columns() const { return mapping_ ? mapping_->launcher().columns.load(std::memory_order_relaxed) : 0; }

int StatusBoard::ranks() const { return mapping_ ? mapping_->ranks : 0; }

std::string str(const StatusBoard::Entry& entry) {
  const auto phase = static_cast<std::size_t>(entry.phase);
  const std::string name = phase < kPhases.size() ? kPhases[phase] : "unknown";
  const bool joined = entry.phase > RankPhase::kJoined && entry.phase != RankPhase::kNotJoined;
  if (!joined) return name;
  if (entry.phase == RankPhase::kInit) return "during " + name;
  return "in step " + std::to_string(entry.step) + ", " + name;
}

}  // namespace lockstep::train
