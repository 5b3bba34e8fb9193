// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/scratch_directory.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

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

/// Whether it is removed. Another program's start may be doing so: then it has the lock.
bool goes(const fs::path& path) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (fs::exists(path) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return !fs::exists(path);
}

/// Of a process that made one and was killed.
fs::path abandoned_directory(const Folder& folder) {
  const pid_t owner = fork();
  if (owner == 0) {
    const ScratchDirectory left;
    write_text(left.path() / "file", "x");
    write_text(folder / "path", left.path().string());
    raise(SIGKILL);
  }
  waitpid(owner, nullptr, 0);
  return read_text(folder / "path");
}

TEST(ScratchDirectory, RemovesThatOfAKilledOwnerAtOnceAndNoOther) {
  const ScratchDirectory living;
  write_text(living.path() / "file", "x");
  const Folder folder;
  const fs::path left = abandoned_directory(folder);
  // What an owner that was killed while it removed it leaves.
  const fs::path rest = abandoned_directory(folder);
  fs::remove(rest / "file");
  const ScratchDirectory next;
  EXPECT_TRUE(goes(left));
  EXPECT_TRUE(goes(rest));
  EXPECT_TRUE(fs::exists(living.path() / "file"));
}

TEST(ScratchDirectory, WithoutALockIsTheRestOfARemoval) {
  const ScratchDirectory one;
  const fs::path rest = one.path().string() + "-rest";
  fs::create_directory(rest);
  const ScratchDirectory next;
  EXPECT_TRUE(goes(rest));
}

TEST(ScratchDirectory, ThatIsNewIsRemovedOnceItsOwnerHadTimeToLockIt) {
  const ScratchDirectory one;
  const std::string name = one.path().filename().string().replace(0, 12, "lockstep-new");
  const auto beside = [&](const char* suffix) { return one.path().parent_path() / (name + suffix); };
  fs::create_directory(beside("-young"));
  fs::create_directory(beside("-old"));
  write_text(beside("-old") / "owner.new", "");
  fs::last_write_time(beside("-old"), fs::file_time_type::clock::now() - std::chrono::hours(1));
  const ScratchDirectory next;
  EXPECT_TRUE(fs::exists(beside("-young")));
  EXPECT_TRUE(goes(beside("-old")));
  fs::remove(beside("-young"));
}

// Anybody may make names in /dev/shm.
TEST(ScratchDirectory, IsNotWhatALinkOfSuchANameLeadsTo) {
  const ScratchDirectory one;
  const Folder folder, with_a_lock_file;
  write_text(folder / "file", "x");
  write_text(with_a_lock_file / "file", "x");
  write_text(with_a_lock_file / "owner", "");
  fs::last_write_time(folder.path(), fs::file_time_type::clock::now() - std::chrono::hours(1));
  const std::string run = one.path().string();
  const std::string beginning =
      one.path().parent_path() / one.path().filename().string().replace(0, 12, "lockstep-new");
  const std::vector<std::pair<fs::path, fs::path>> links{
      {run + "-link", folder.path()}, {beginning + "-link", folder.path()}, {run + "-lock", with_a_lock_file.path()}};
  for (const auto& [link, target] : links) fs::create_directory_symlink(target, link);
  const ScratchDirectory next;
  EXPECT_TRUE(fs::exists(folder / "file"));
  EXPECT_TRUE(fs::exists(with_a_lock_file / "file"));
  EXPECT_TRUE(fs::exists(with_a_lock_file / "owner"));
  for (const auto& [link, target] : links) fs::remove(link);
}

TEST(ScratchDirectory, GoesWithoutWhatALinkInItLeadsTo) {
  const Folder folder;
  write_text(folder / "file", "x");
  {
    const ScratchDirectory scratch;
    fs::create_directory_symlink(folder.path(), scratch.path() / "link");
    fs::create_symlink(folder / "file", scratch.path() / "file");
  }
  EXPECT_TRUE(fs::exists(folder / "file"));
}

TEST(ScratchDirectory, OfAnotherUserIsLeftAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a directory of another user";
  constexpr uid_t kNobody = 65534;
  const ScratchDirectory one;
  const fs::path foreign = one.path().string() + "-foreign";
  fs::create_directory(foreign);
  ASSERT_EQ(chown(foreign.c_str(), kNobody, kNobody), 0);
  const ScratchDirectory next;
  EXPECT_TRUE(fs::remove(foreign));
}

TEST(ScratchDirectory, MayGoBeforeItsOwner) {
  ScratchDirectory scratch;
  const fs::path path = scratch.path();
  write_text(path / "file", "x");
  scratch.remove();
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(scratch.path().empty());
  fs::create_directory(path);  // of somebody else
  scratch.remove();
  EXPECT_TRUE(fs::remove(path));
}

}  // namespace
}  // namespace lockstep::launcher
