// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/data_file.h"

#include <gmock/gmock.h>

#include "runtime/data/make_dataset.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DataFiles, ThatChangeAreNamed) {
  const TemporaryFolder folder;
  const std::string path = folder.write_text("t.bin", "abcd");
  const DataFile before = look_at(path);
  EXPECT_EQ(before.bytes, 4u);
  EXPECT_THAT(changes({before}, {look_at(path)}), IsEmpty());
  folder.write_text("t.bin", "abcdef");
  EXPECT_THAT(changes({before}, {look_at(path)}), ElementsAre(path + ": 4 -> 6 bytes"));
  folder.write_text("t.bin", "abce");
  EXPECT_THAT(changes({before}, {look_at(path)}), ElementsAre(path + ": its first bytes differ"));
  folder.write_text("t.bin", "abcd");
  const auto time = std::filesystem::last_write_time(path);
  std::filesystem::last_write_time(path, time + std::chrono::seconds(5));
  EXPECT_THAT(changes({before}, {look_at(path)}), ElementsAre(path + ": was written again"));
}

TEST(DataFiles, LieWhereTheyLie) {
  const TemporaryFolder folder;
  const DataFile before = look_at(folder.write_text("a", "x"));
  std::filesystem::rename(folder.path("a"), folder.path("b"));
  EXPECT_THAT(changes({before}, {look_at(folder.path("b"))}), IsEmpty());
}

TEST(DataFiles, OfAFolderAreItsNames) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path("images/cat"));
  folder.write_text("images/cat/a.png", "1");
  const std::string path = folder.path("images");
  const DataFile before = look_at(path);
  EXPECT_EQ(before.bytes, 1u);
  EXPECT_THAT(changes({before}, {look_at(path)}), IsEmpty());
  std::filesystem::rename(folder.path("images/cat/a.png"), folder.path("images/cat/b.png"));
  EXPECT_THAT(changes({before}, {look_at(path)}), ElementsAre(path + ": names of its files differ"));
  folder.write_text("images/cat/c.png", "1");
  EXPECT_THAT(changes({before}, {look_at(path)}), ElementsAre(path + ": 1 -> 2 files"));
}

TEST(DataFiles, BelowALinkBackAreCountedOnce) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path("a/b"));
  std::filesystem::create_directories(folder.path("c"));
  folder.write_text("a/b/x", "1");
  std::filesystem::create_directory_symlink("..", folder.path("a/b/up"));
  std::filesystem::create_directory_symlink("../..", folder.path("a/b/top"));
  EXPECT_EQ(look_at(folder.path("a")).bytes, 1u);
  // The same folder is met again where it is not within itself.
  std::filesystem::create_directory_symlink("../a/b", folder.path("c/linked"));
  std::filesystem::create_directory_symlink("../a/b", folder.path("c/again"));
  std::filesystem::remove(folder.path("a/b/up"));
  std::filesystem::remove(folder.path("a/b/top"));
  EXPECT_EQ(look_at(folder.path("c")).bytes, 2u);
}

TEST(DataFiles, AreThoseThatTheOptionsName) {
  const TemporaryFolder folder;
  const std::string a = folder.write_text("a.bin", "ab");
  const std::string b = folder.write_text("b.bin", "cd");
  const std::vector<DataFile> files = look_at_files(TokensOptions{.files = {a, b}});
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[1].path, b);
  EXPECT_EQ(files_of(TokensOptions{.files = {a, b}, .vocab_file = "v", .merges_file = "m"})[2].field, "vocab_file");
  EXPECT_THAT(look_at_files(SyntheticOptions()), IsEmpty());
  EXPECT_THROW(look_at_files(IdxOptions{a, folder.path("none")}), StorageError);
}

}  // namespace
}  // namespace lockstep::data
