// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/files/locked_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "runtime/base/process.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class LockedFile : public testing::Test {
 protected:
  LockedFile() {
    std::string pattern = fs::temp_directory_path() / "lockstep-lock-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~LockedFile() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(LockedFile, IsHeldAsLongAsItsMakerLives) {
  const fs::path path = folder_ / "owner";
  const pid_t maker = fork();
  if (maker == 0) {
    const Descriptor mine = make_locked_file(path);
    raise(SIGSTOP);
    pause();
  }
  int status = 0;
  waitpid(maker, &status, WUNTRACED);
  EXPECT_TRUE(fs::exists(path));
  EXPECT_FALSE(fs::exists(path.string() + ".new"));
  EXPECT_FALSE(take_lock(path));
  signal_child(maker, SIGKILL);
  waitpid(maker, nullptr, 0);
  const Descriptor mine = take_lock(path);
  EXPECT_TRUE(mine);
  EXPECT_FALSE(take_lock(path)) << "held by this process";
}

TEST_F(LockedFile, ThatCannotBeMadeIsNone) {
  EXPECT_FALSE(make_locked_file(folder_ / "none/owner"));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(take_lock(folder_ / "none/owner"));
}

}  // namespace
}  // namespace lockstep
