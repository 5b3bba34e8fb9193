// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "launcher/run_directory.h"
#include "launcher/scratch_directory.h"
#include "runtime/tensor/error.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

namespace fs = std::filesystem;

TEST(ScratchDirectory, GoesWithAllThatIsInIt) {
  fs::path path;
  {
    const ScratchDirectory scratch;
    path = scratch.path();
    write_text(path / "file", "x");
    EXPECT_TRUE(fs::exists(path / "file"));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(ScratchDirectory, RemovesThatOfAKilledOwnerAndNoOther) {
  const ScratchDirectory living;
  const Folder folder;
  const pid_t owner = fork();
  if (owner == 0) {
    const ScratchDirectory left;
    write_text(folder / "path", left.path().string());
    raise(SIGKILL);
  }
  waitpid(owner, nullptr, 0);
  const fs::path left = read_text(folder / "path");
  ASSERT_TRUE(fs::exists(left));
  const auto before = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(left, before);
  fs::last_write_time(living.path(), before);
  const ScratchDirectory next;
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(living.path()));
}

TEST(RunDirectory, IsNamedAfterTheJobUnlessGiven) {
  job::Job job;
  job.set_name("digits");
  EXPECT_EQ(run_directory("", job), "runs/digits");
  EXPECT_EQ(run_directory("elsewhere", job), "elsewhere");
}

TEST(RunDirectory, ThatCannotBeMadeIsAStorageError) {
  const Folder folder;
  write_text(folder / "file", "x");
  make_run_directory(folder / "a/b");
  make_run_directory(folder / "a/b");
  EXPECT_TRUE(fs::is_directory(folder / "a/b"));
  EXPECT_THROW(make_run_directory(folder / "file"), StorageError);
  EXPECT_THROW(make_run_directory(folder / "file/below"), StorageError);
}

TEST(RunDirectory, KnowsWhetherACheckpointIsNew) {
  const Folder folder;
  const auto now = fs::file_time_type::clock::now();
  EXPECT_FALSE(saved_since(folder.path(), now));
  fs::create_directories(folder / "checkpoints/step-00000001");
  EXPECT_FALSE(saved_since(folder.path(), now));
  write_text(folder / "checkpoints/step-00000001/manifest.json", "{}");
  EXPECT_TRUE(saved_since(folder.path(), now - std::chrono::seconds(5)));
  EXPECT_FALSE(saved_since(folder.path(), now + std::chrono::seconds(5)));
}

}  // namespace
}  // namespace lockstep::launcher
