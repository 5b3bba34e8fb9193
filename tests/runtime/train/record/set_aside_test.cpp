// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/set_aside.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/files/storage_faults.h"
#include "runtime/train/record/run_lock.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class SetAside : public testing::Test {
 protected:
  SetAside() {
    fs::create_directories(run_dir_ / "checkpoints/step-00000002");
    fs::create_directories(run_dir_ / "checkpoints/step-00000004");
    std::ofstream(run_dir_ / "metrics.jsonl") << "{}\n";
  }
  ~SetAside() override {
    set_storage_hook({});
    fs::remove_all(folder_);
  }

  static fs::path make_folder() {
    std::string pattern = testing::TempDir() + "lockstep-set-aside-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    return pattern;
  }

  const fs::path folder_ = make_folder();
  const fs::path run_dir_ = folder_ / "run";
};

// A power cut must not take a checkpoint from both places.
TEST_F(SetAside, SyncsWhereCheckpointsArriveBeforeWhereTheyLeave) {
  std::vector<std::string> calls;
  set_storage_hook([&](const StorageCall& call) {
    if (call.operation == StorageOperation::kRename) calls.push_back("rename");
    if (call.operation == StorageOperation::kSync) calls.push_back(fs::relative(call.path, run_dir_).string());
    return StorageFault{};
  });
  set_aside_later_checkpoints(run_dir_, 2);
  EXPECT_THAT(calls, testing::ElementsAre(".", "earlier-1", "rename", "earlier-1/checkpoints", "checkpoints"));
  EXPECT_TRUE(fs::exists(run_dir_ / "earlier-1/checkpoints/step-00000004"));
  EXPECT_TRUE(fs::exists(run_dir_ / "checkpoints/step-00000002"));
}

TEST_F(SetAside, OfAWholeRunIsDurableToo) {
  std::vector<std::string> synced;
  set_storage_hook([&](const StorageCall& call) {
    if (call.operation == StorageOperation::kSync) synced.push_back(fs::relative(call.path, run_dir_).string());
    return StorageFault{};
  });
  set_aside_earlier_run(run_dir_);
  EXPECT_THAT(synced, testing::ElementsAre(".", "earlier-1", "."));
  EXPECT_TRUE(fs::exists(run_dir_ / "earlier-1/checkpoints/step-00000004"));
  EXPECT_FALSE(fs::exists(run_dir_ / "checkpoints"));
}

TEST_F(SetAside, TriesAgainWhatFailsForAMoment) {
  for (const StorageOperation operation :
       {StorageOperation::kMakeDirectory, StorageOperation::kRename, StorageOperation::kSync}) {
    bool failed = false;
    set_storage_hook([&](const StorageCall& call) {
      return StorageFault{call.operation == operation && !std::exchange(failed, true) ? EIO : 0};
    });
    fs::create_directories(run_dir_ / "checkpoints/step-00000004");
    set_aside_later_checkpoints(run_dir_, 2);
    EXPECT_TRUE(failed);
    EXPECT_FALSE(fs::exists(run_dir_ / "checkpoints/step-00000004"));
  }
}

TEST_F(SetAside, NamesWhatCannotBeMoved) {
  set_storage_hook(
      [](const StorageCall& call) { return StorageFault{call.operation == StorageOperation::kRename ? EACCES : 0}; });
  EXPECT_THAT([&] { set_aside_later_checkpoints(run_dir_, 2); },
              ThrowsMessage<StorageError>(HasSubstr("checkpoints/step-00000004: Permission denied")));
}

// The lock's file is emptied at the end of a run.
TEST_F(SetAside, LockOfALinkIsRefused) {
  std::ofstream(folder_ / "notes") << "of somebody";
  fs::create_symlink(folder_ / "notes", run_dir_ / ".lock");
  EXPECT_THAT([&] { RunLock(run_dir_, {}); }, ThrowsMessage<StorageError>(HasSubstr(".lock is a symbolic link")));
  EXPECT_EQ(fs::file_size(folder_ / "notes"), 11u);
}

}  // namespace
}  // namespace lockstep::train
