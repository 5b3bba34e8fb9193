// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/store.h"

#include <gmock/gmock.h>

#include "runtime/checkpoint/temporary_directory.h"
#include "tests/runtime/checkpoint/checkpoint_support.h"

namespace lockstep::checkpoint {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class StoreTest : public testing::Test {
 protected:
  ScratchDirectory scratch_;
  std::string path_ = scratch_ / "run/checkpoints";
  Store store_ = store_in(path_);
};

TEST_F(StoreTest, GivesBackWhatWasSaved) {
  EXPECT_EQ(store_.save(state_at(7), tensors_at(7)), path_ + "/step-00000007");
  expect_content(store_.load(path_ + "/step-00000007"), 7);
  const std::optional<Checkpoint> latest = store_.latest();
  ASSERT_TRUE(latest.has_value());
  EXPECT_EQ(latest->path, path_ + "/step-00000007");
  EXPECT_TRUE(latest->notices.empty());
}

TEST_F(StoreTest, GivesTheNewestStateOfWhatIsWholeToItsLastTensor) {
  for (const std::uint64_t step : {4u, 5u}) save(path_, step);
  flip_bit(path_ + "/step-00000005/tensors.safetensors", 280, 0);
  const std::optional<Checkpoint> latest = store_.latest_state();
  ASSERT_TRUE(latest.has_value());
  EXPECT_EQ(latest->state.SerializeAsString(), state_at(4).SerializeAsString());
  EXPECT_TRUE(latest->tensors.empty());
  EXPECT_EQ(latest->notices.size(), 1u);
}

TEST_F(StoreTest, WithoutADirectoryHoldsNothing) {
  EXPECT_TRUE(store_.scan().empty());
  EXPECT_FALSE(store_.latest().has_value());
  EXPECT_NO_THROW(store_.prune(3));
  EXPECT_THROW(store_.load(path_ + "/step-00000001"), StorageError);
}

TEST_F(StoreTest, SavesARunWithoutTensors) {
  store_.save(state_at(0), {});
  EXPECT_TRUE(store_.latest()->tensors.empty());
}

TEST_F(StoreTest, OrdersBySteps) {
  for (const std::uint64_t step : {9ull, 123456789ull, 10ull, 18446744073709551615ull}) save(path_, step);
  std::vector<std::uint64_t> steps;
  for (const ScanEntry& entry : store_.scan()) steps.push_back(entry.step);
  EXPECT_EQ(steps, (std::vector<std::uint64_t>{18446744073709551615ull, 123456789, 10, 9}));
  EXPECT_EQ(store_.latest(123456789)->state.step(), 10u);
  EXPECT_FALSE(store_.latest(9).has_value());
}

TEST_F(StoreTest, KeepsAWholeCheckpointOfTheSameStep) {
  save(path_, 5);
  const auto written = fs::last_write_time(path_ + "/step-00000005/state.pb");
  save(path_, 5);
  EXPECT_EQ(fs::last_write_time(path_ + "/step-00000005/state.pb"), written);
  EXPECT_EQ(names_in(path_).size(), 1u);
}

TEST_F(StoreTest, ReplacesADamagedCheckpointOfTheSameStep) {
  save(path_, 5);
  fs::remove(path_ + "/step-00000005/manifest.json");
  save(path_, 5);
  expect_content(*store_.latest(), 5);
  EXPECT_EQ(names_in(path_).size(), 1u);
}

TEST_F(StoreTest, LetsTwoSaversOfTheSameStepsRace) {
  if (is_emulated()) GTEST_SKIP() << "under QEMU a process looks younger to itself than to others";
  const auto save_many = [&] {
    for (std::uint64_t step = 1; step <= 60; ++step) save(path_, step);
  };
  const pid_t other = ::fork();
  if (other == 0) ::_exit(in_child(save_many));
  save_many();
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (const ScanEntry& entry : store_.scan()) EXPECT_EQ(entry.damage, "");
  EXPECT_EQ(names_in(path_).size(), 60u);
}

TEST_F(StoreTest, PruneKeepsTheNewest) {
  for (std::uint64_t step = 1; step <= 5; ++step) save(path_, step);
  store_.prune(0);
  EXPECT_EQ(names_in(path_).size(), 5u);
  store_.prune(2);
  EXPECT_EQ(names_in(path_), (std::vector<std::string>{"step-00000004", "step-00000005"}));
}

TEST_F(StoreTest, KeepsOnlyOne) {
  for (const std::uint64_t step : {3, 5, 8}) save(path_, step);
  store_.keep_only(5);
  EXPECT_EQ(names_in(path_).size(), 1u);
  expect_content(*store_.latest(), 5);
  EXPECT_THROW(store_.keep_only(8), StorageError);
  EXPECT_EQ(names_in(path_).size(), 1u);
}

TEST_F(StoreTest, PruneDoesNotCountADamagedCheckpoint) {
  for (std::uint64_t step = 1; step <= 3; ++step) save(path_, step);
  flip_bit(path_ + "/step-00000003/tensors.safetensors", 280, 0);
  store_.prune(1);
  EXPECT_EQ(names_in(path_), (std::vector<std::string>{"step-00000002", "step-00000003"}));
  expect_content(*store_.latest(), 2);
}

TEST_F(StoreTest, IgnoresWhatItDoesNotKnow) {
  save(path_, 5);
  fs::create_directory(path_ + "/step-5");
  fs::create_directory(path_ + "/step-00000006.backup");
  fs::create_directory(path_ + "/best");
  spill(path_ + "/step-00000007", "a file");
  store_.prune(1);
  EXPECT_EQ(store_.scan().size(), 1u);
  EXPECT_EQ(names_in(path_).size(), 5u);
}

TEST_F(StoreTest, RemovesTemporaryDirectoriesOfDeadWritersOnly) {
  save(path_, 5);
  pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ::waitpid(dead, nullptr, 0);
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  const std::string stem = path_ + "/step-00000006.tmp-" + host + ".";
  fs::create_directory(stem + std::to_string(dead) + ".123.0");
  fs::create_directory(stem + std::to_string(::getppid()) + ".1.0");   // another process had this id before
  fs::create_directory(path_ + "/step-00000006.tmp-elsewhere.1.1.0");  // cannot be known, and is young
  fs::create_directory(path_ + "/step-00000007.tmp-elsewhere.1.1.0");
  fs::last_write_time(path_ + "/step-00000007.tmp-elsewhere.1.1.0",
                      fs::file_time_type::clock::now() - std::chrono::hours(25));
  const std::vector<std::string> rest{"step-00000005", "step-00000006.tmp-elsewhere.1.1.0"};
  {
    const ScopedHook failing([](const StorageCall& call) {
      return StorageFault{call.operation == StorageOperation::kRemoveDirectory ? EIO : 0};
    });
    EXPECT_NO_THROW(store_.remove_abandoned());
  }
  EXPECT_EQ(names_in(path_).size(), 5u);
  store_.remove_abandoned();
  EXPECT_EQ(names_in(path_), rest);
  fs::create_directory(stem + std::to_string(dead) + ".123.0");
  store_.prune(1);
  EXPECT_EQ(names_in(path_), rest);
}

TEST_F(StoreTest, LeavesALiveWritersTemporaryDirectory) {
  if (is_emulated()) GTEST_SKIP() << "under QEMU a process looks younger to itself than to others";
  save(path_, 5);
  int ready[2], finish[2];
  ASSERT_EQ(::pipe(ready) + ::pipe(finish), 0);
  const pid_t writer = ::fork();
  if (writer == 0) {
    char byte = 0;
    set_storage_hook([&](const StorageCall& call) {
      if (call.operation == StorageOperation::kRename &&
          (::write(ready[1], "r", 1) + ::read(finish[0], &byte, 1)) != 2) {
        ::_exit(1);
      }
      return StorageFault{};
    });
    save(path_, 6);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  store_.prune(1);
  EXPECT_EQ(names_in(path_).size(), 2u);
  ASSERT_EQ(::write(finish[1], "f", 1), 1);
  int status = 0;
  ::waitpid(writer, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  expect_content(*store_.latest(), 6);
  for (const int descriptor : {ready[0], ready[1], finish[0], finish[1]}) ::close(descriptor);
}

/// Makes the checkpoint one of a later format.
void make_newer(const std::string& checkpoint) {
  const std::string text = format_manifest(check_sizes(checkpoint));
  std::string newer = text.substr(0, text.rfind(",\n  \"checksum\""));
  newer.replace(newer.find("\"version\": 1"), 12, "\"version\": 2");
  const Digest digest = digest_of(std::as_bytes(std::span(newer)));
  spill(checkpoint + "/manifest.json", newer + ",\n  \"checksum\": \"" + digest.checksum + "\"\n}\n");
}

TEST_F(StoreTest, RefusesAManifestOfAnotherVersionAndKeepsTheCheckpoint) {
  save(path_, 5);
  make_newer(path_ + "/step-00000005");
  EXPECT_NE(store_.scan()[0].damage.find("format version 2; this program reads 1"), std::string::npos);
  store_.prune(1);
  EXPECT_EQ(names_in(path_).size(), 1u);
}

// A checkpoint that cannot be looked at (here a link that leads to itself; EACCES and EIO likewise) is a damaged one.
TEST_F(StoreTest, FallsBackFromOneThatCannotBeLookedAt) {
  save(path_, 4);
  fs::create_symlink(path_ + "/step-00000005", path_ + "/step-00000005");
  spill(path_ + "/step-00000006", "a file");
  fs::create_directories(path_ + "/step-00000007/manifest.json");
  const std::optional<Checkpoint> latest = store_.latest();
  ASSERT_TRUE(latest.has_value());
  EXPECT_EQ(latest->state.step(), 4u);
  EXPECT_EQ(latest->notices.size(), 2u) << "a file is no checkpoint";
}

TEST_F(StoreTest, SavesWhereSomethingElseStands) {
  fs::create_directories(path_);
  spill(path_ + "/step-00000005", "a file");
  fs::create_symlink(path_ + "/step-00000006", path_ + "/step-00000006");
  fs::create_directories(path_ + "/step-00000007/inside");
  for (const std::uint64_t step : {5u, 6u, 7u}) {
    save(path_, step);
    expect_content(*store_.latest(), step);
  }
  EXPECT_EQ(names_in(path_),
            (std::vector<std::string>{"step-00000005", "step-00000005.was-here", "step-00000006",
                                      "step-00000006.was-here", "step-00000007", "step-00000007.was-here"}));
  EXPECT_TRUE(fs::is_directory(path_ + "/step-00000007.was-here/inside"));
}

// An older program, and one whose disk fails at the moment, cannot tell that it is damaged.
TEST_F(StoreTest, KeepsOneThatItCannotReadAndSavesInItsPlace) {
  for (const std::uint64_t step : {5u, 6u}) save(path_, step);
  make_newer(path_ + "/step-00000005");
  save(path_, 5);
  {
    const ScopedHook hook([&](const StorageCall& call) {
      const bool is_old = call.operation == StorageOperation::kRead && call.path == path_ + "/step-00000006/state.pb";
      return StorageFault{is_old ? EIO : 0};
    });
    save(path_, 6);
  }
  EXPECT_EQ(names_in(path_), (std::vector<std::string>{"step-00000005", "step-00000005.was-here", "step-00000006",
                                                       "step-00000006.was-here"}));
  for (const std::uint64_t step : {5u, 6u})
    expect_content(store_.load(path_ + "/step-0000000" + std::to_string(step)), step);
  expect_content(store_.load(path_ + "/step-00000006.was-here"), 6);
}

TEST_F(StoreTest, DeletesADamagedOneOnceTheNewOneIsDurable) {
  save(path_, 5);
  flip_bit(path_ + "/step-00000005/tensors.safetensors", 280, 0);
  std::vector<std::string> calls;
  {
    const ScopedHook hook([&](const StorageCall& call) {
      if (call.operation == StorageOperation::kUnlink) calls.push_back("unlink");
      if (call.operation == StorageOperation::kRename) calls.push_back("rename");
      if (call.operation == StorageOperation::kSync && call.path == path_) calls.push_back("sync");
      return StorageFault{};
    });
    save(path_, 5);
  }
  const auto end_of = [&](const char* call) { return std::find(calls.rbegin(), calls.rend(), call); };
  ASSERT_NE(end_of("sync"), calls.rend());
  EXPECT_EQ(std::count(end_of("sync"), calls.rend(), "unlink"), 0) << "before the sync";
  EXPECT_GE(std::count(calls.begin(), calls.end(), "unlink"), 3);
  EXPECT_EQ(names_in(path_), (std::vector<std::string>{"step-00000005"}));
}

// Somebody moved a checkpoint elsewhere and left a link to it.
TEST_F(StoreTest, DeletesALinkAndNotWhatItLeadsTo) {
  for (std::uint64_t step = 1; step <= 4; ++step) save(path_, step);
  for (const std::string name : {"step-00000001", "step-00000002"}) {
    fs::rename(path_ + "/" + name, scratch_ / name);
    fs::create_symlink(scratch_ / name, path_ + "/" + name);
  }
  store_.prune(3);
  EXPECT_EQ(names_in(path_), (std::vector<std::string>{"step-00000002", "step-00000003", "step-00000004"}));
  store_.keep_only(4);
  EXPECT_EQ(names_in(path_), (std::vector<std::string>{"step-00000004"}));
  for (const std::uint64_t step : {1u, 2u}) {
    expect_content(store_.load(scratch_ / ("step-0000000" + std::to_string(step))), step);
  }
}

// The directory's name may get lost with a power cut until its parent is synced.
TEST_F(StoreTest, SyncsTheParentOfItsDirectoryAlsoWhereThatFailsAtFirst) {
  const std::string parent = scratch_ / "run/";
  fs::create_directory(parent);
  int syncs = 0;
  {
    const ScopedHook hook([&](const StorageCall& call) {
      const bool is_first = call.operation == StorageOperation::kSync && call.path == parent && syncs++ == 0;
      return StorageFault{is_first ? EIO : 0};
    });
    save(path_, 5);
  }
  EXPECT_EQ(syncs, 2);
}

TEST_F(StoreTest, DeletesTheOthersOfOneThatCannotBeDeleted) {
  for (std::uint64_t step = 1; step <= 4; ++step) save(path_, step);
  fs::create_directories(path_ + "/step-00000002/inside");
  EXPECT_THAT([&] { store_.prune(1); }, ThrowsMessage<StorageError>(HasSubstr("step-00000002: it holds a directory")));
  EXPECT_EQ(names_in(path_), (std::vector<std::string>{"step-00000002", "step-00000004"}));
  save(path_, 5);
  EXPECT_THROW(store_.keep_only(5), StorageError);
  EXPECT_EQ(names_in(path_), (std::vector<std::string>{"step-00000002", "step-00000005"}));
}

// What a dead writer left behind may hold what no checkpoint does.
TEST_F(StoreTest, SavesBesideRemainsThatCannotBeDeleted) {
  ASSERT_EQ(in_child([&] {
              fs::create_directories(path_);
              const TemporaryDirectory work(path_, "step-00000003");
              fs::create_directories(work.path() + "/inside");
            }),
            0);
  ASSERT_EQ(names_in(path_).size(), 1u);
  save(path_, 4);
  expect_content(*store_.latest(), 4);
}

// What the reader has found is gone by the time that it reads it.
TEST_F(StoreTest, ReadsBesideARunThatKeepsOne) {
  save(path_, 1);
  const pid_t saver = ::fork();
  if (saver == 0) {
    ::_exit(in_child([&] {
      for (std::uint64_t step = 2; step <= 300; ++step) {
        save(path_, step);
        store_in(path_).prune(1);
      }
    }));
  }
  int status = 0;
  while (::waitpid(saver, &status, WNOHANG) == 0) {
    std::optional<Checkpoint> latest;
    EXPECT_NO_THROW(latest = store_.latest());
    ASSERT_TRUE(latest.has_value());
    expect_content(*latest, latest->state.step());
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace lockstep::checkpoint
