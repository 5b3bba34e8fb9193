// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/stall_watch.h"

#include <gmock/gmock.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <future>
#include <span>
#include <system_error>

#include "runtime/base/files/durable_file.h"
#include "runtime/base/files/storage_calls.h"
#include "runtime/base/files/storage_faults.h"
#include "tests/support/no_threads.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class StallWatchTest : public testing::Test {
 protected:
  StallWatchTest() {
    std::string pattern = (fs::temp_directory_path() / "lockstep-stall-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~StallWatchTest() override {
    set_storage_hook({});
    fs::remove_all(folder_);
  }

  void save() const {
    OutputFile file((folder_ / "weights").string());
    file.write(std::as_bytes(std::span("weights", 7)));
    file.sync_and_close();
  }

  fs::path folder_;
};

std::string in_step_five() { return "in step 5"; }

[[noreturn]] void end_with(const Error& error) {
  std::fputs(error.what(), stderr);
  _exit(static_cast<int>(error.code()));
}

TEST_F(StallWatchTest, NamesACallThatDoesNotReturn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto save_on_a_dead_disk = [this] {
    set_storage_hook([](const StorageCall& call) {
      while (call.operation == StorageOperation::kSync) pause();
      return StorageFault{};
    });
    // This process made a folder of its own, and ends without the fixture.
    const auto end = [this](const Error& error) {
      fs::remove_all(folder_);
      end_with(error);
    };
    const StallWatch watch(milliseconds(100), in_step_five, end);
    save();
  };
  EXPECT_EXIT(save_on_a_dead_disk(), testing::ExitedWithCode(4),
              "cannot fsync .*/weights, in step 5: the system has not answered for 1 s");
}

// A slow disk is left alone: many calls, none of them longer than the limit, all together far longer.
TEST_F(StallWatchTest, SeesEachCallByItself) {
  int calls = 0;
  auto last = std::chrono::steady_clock::now();
  set_storage_hook([&](const StorageCall& call) {
    const auto pending = oldest_pending_call();
    EXPECT_TRUE(pending && pending->operation == call.operation && pending->path == call.path) << calls;
    EXPECT_TRUE(pending && pending->begin >= last) << calls;
    ++calls;
    last = std::chrono::steady_clock::now();
    return StorageFault{};
  });
  save();
  EXPECT_GE(calls, 4) << "open, write, fsync, close";
  EXPECT_FALSE(oldest_pending_call());
}

TEST_F(StallWatchTest, EndsAtOnce) { const StallWatch watch(std::chrono::hours(1), in_step_five, end_with); }

TEST_F(StallWatchTest, LeavesTheSignalsOfThisThreadAsTheyWereWhereTheSystemStartsNone) {
  const support::NoMoreThreads no_more;
  EXPECT_THROW(StallWatch(std::chrono::hours(1), in_step_five, end_with), std::system_error);
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 0);
}

}  // namespace
}  // namespace lockstep::train
