// SPDX-License-Identifier: Apache-2.0
// The lock of a run directory where the file system knows no locks: a lease.
#include "runtime/train/record/run_lock.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/base/process.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::ThrowsMessage;

int no_locks(int, int) {
  errno = ENOLCK;
  return -1;
}

constexpr Lease::Times kQuick{.renewal = 20ms, .lapse = 400ms};
constexpr Lease::Times kNever{.renewal = 20ms, .lapse = 10min};

class RunLease : public testing::Test {
 protected:
  RunLease() {
    std::string pattern = testing::TempDir() + "lockstep-lease-XXXXXX";
    run_dir_ = mkdtemp(pattern.data());
    file_ = run_dir_ / ".lease";
  }
  ~RunLease() override { fs::remove_all(run_dir_); }

  std::string content() const {
    std::ifstream file(file_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// A file of a process of another host.
  void write_foreign(int renewals) const {
    std::ofstream(file_) << "process 7 on elsewhere since then\nanother-boot/1 7 100 0\n" << renewals << "\n";
  }

  fs::path run_dir_;
  fs::path file_;
};

TEST_F(RunLease, KeepsARunDirectoryToOneRun) {
  {
    const RunLock first(run_dir_, 0ms, no_locks, kNever);
    EXPECT_THAT([&] { RunLock(run_dir_, 100ms, no_locks, kNever); },
                ThrowsMessage<UsageError>(HasSubstr("process " + std::to_string(getpid()) + " on ")));
  }
  EXPECT_FALSE(fs::exists(file_)) << "the end gives it up";
  const RunLock second(run_dir_, 0ms, no_locks, kNever);
}

TEST_F(RunLease, IsNotTakenWhereThereAreLocks) {
  const RunLock lock(run_dir_, 0ms);
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(RunLease, IsRenewed) {
  const RunLock lock(run_dir_, 0ms, no_locks, kQuick);
  const std::string before = content();
  while (content() == before) std::this_thread::sleep_for(1ms);  // the test's timeout ends a wait without an end
  EXPECT_THAT(content(), ContainsRegex("^process [0-9]+ on .*\n.*\n[0-9]+\n$"));
}

/// A process that has taken the lease and was killed.
void take_and_die(const fs::path& run_dir) {
  const pid_t child = fork();
  if (child == 0) {
    const RunLock lock(run_dir, 0ms, no_locks, kNever);
    _exit(0);  // no destructor runs
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

TEST_F(RunLease, OfADeadProcessOfThisBootIsTakenOverAtOnce) {
  take_and_die(run_dir_);
  ASSERT_TRUE(fs::exists(file_));
  const RunLock lock(run_dir_, 0ms, no_locks, kNever);
  EXPECT_THAT(content(), HasSubstr("process " + std::to_string(getpid()) + " on "));
}

// Its number is another process's by now.
TEST_F(RunLease, OfADeadProcessWhoseNumberIsReusedIsTakenOver) {
  take_and_die(run_dir_);
  std::string text = content();
  const std::size_t place = text.find(' ', text.find('\n'));
  text.replace(place + 1, text.find(' ', place + 1) - place - 1, std::to_string(getpid()));
  std::ofstream(file_) << text;
  const RunLock lock(run_dir_, 0ms, no_locks, kNever);
}

TEST_F(RunLease, OfAnotherHostIsTakenOverOnceItIsNoLongerRenewed) {
  write_foreign(4);
  const auto begin = std::chrono::steady_clock::now();
  const RunLock lock(run_dir_, 1ms, no_locks, kQuick);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, kQuick.lapse);
  EXPECT_THAT(content(), HasSubstr("process " + std::to_string(getpid()) + " on "));
}

TEST_F(RunLease, OfAnotherHostThatIsRenewedIsRespected) {
  std::atomic<bool> done = false;
  write_foreign(0);
  std::thread other([&] {
    for (int renewals = 1; !done; ++renewals, std::this_thread::sleep_for(5ms)) write_foreign(renewals);
  });
  EXPECT_THAT([&] { RunLock(run_dir_, 300ms, no_locks, kNever); },
              ThrowsMessage<UsageError>(HasSubstr("process 7 on elsewhere since then")));
  done = true;
  other.join();
}

// A process that was killed between making it and writing into it.
TEST_F(RunLease, ThatNamesNobodyIsTakenOverInTime) {
  std::ofstream(file_) << "";
  const RunLock lock(run_dir_, 1ms, no_locks, kQuick);
  EXPECT_THAT(content(), HasSubstr("process " + std::to_string(getpid()) + " on "));
}

}  // namespace
}  // namespace lockstep::train
