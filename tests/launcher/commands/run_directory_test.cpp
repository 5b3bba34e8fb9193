// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/run_directory.h"

#include <gtest/gtest.h>

#include <chrono>

#include "configs/job.pb.h"
#include "runtime/base/error.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

namespace fs = std::filesystem;

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
