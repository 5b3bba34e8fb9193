// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/files/whole_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/host_name.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class WholeFile : public testing::Test {
 protected:
  WholeFile() {
    std::string pattern = (fs::temp_directory_path() / "lockstep_base_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~WholeFile() override { fs::remove_all(folder_); }

  static std::string content_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::size_t entries_in(const fs::path& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
  }

  fs::path folder_;
};

TEST_F(WholeFile, WhatKilledProcessesHaveLeftIsRemoved) {
  const std::string host = std::string(".").append(host_name()).append(".");
  const std::string self = std::to_string(::getpid());
  const std::string parent = std::to_string(::getppid());  // still there
  // Process ids do not come so high.
  for (const std::string& left : {host + "999999999.0.tmp", host + self + ".77.tmp"}) {
    std::ofstream(folder_ / left) << "{";
    remove_abandoned_files(folder_);
    EXPECT_EQ(entries_in(folder_), 0u) << left;
  }
  std::set<std::string> kept{host + parent + ".0.tmp", ".elsewhere.999999999.0.tmp",
                             host + "x.0.tmp",         host + "9.tmp",
                             "999999999.0.tmp",        "metrics.jsonl"};
  for (const std::string& name : kept) std::ofstream(folder_ / name) << "{";
  fs::last_write_time(folder_ / ".elsewhere.999999999.0.tmp", fs::file_time_type::clock::now());
  remove_abandoned_files(folder_);
  EXPECT_EQ(entries_in(folder_), kept.size());
  fs::last_write_time(folder_ / ".elsewhere.999999999.0.tmp",
                      fs::file_time_type::clock::now() - std::chrono::hours(25));
  remove_abandoned_files(folder_);
  EXPECT_EQ(entries_in(folder_), kept.size() - 1);
  remove_abandoned_files(folder_ / "nowhere");
}

TEST_F(WholeFile, IsWrittenAndReplaced) {
  const fs::path path = folder_ / "text";
  EXPECT_FALSE(write_whole_file(path, "first and longer"));
  EXPECT_EQ(content_of(path), "first and longer");
  EXPECT_FALSE(write_whole_file(path, std::string("se\0cond", 7)));
  EXPECT_EQ(content_of(path), std::string("se\0cond", 7));
  EXPECT_EQ(entries_in(folder_), 1u) << "nothing else stays";
}

TEST_F(WholeFile, MakesMissingDirectories) {
  EXPECT_FALSE(write_whole_file(folder_ / "a" / "b" / "text", ""));
  EXPECT_TRUE(fs::exists(folder_ / "a" / "b" / "text"));
}

// A name that somebody has foreseen, with a link behind it to a file of ours.
TEST_F(WholeFile, IsNotWrittenThroughALink) {
  const fs::path victim = folder_ / "victim";
  ASSERT_FALSE(write_whole_file(victim, "ours"));
  for (int serial = 0; serial < 1000; ++serial) {
    fs::create_symlink(victim, folder_ / fmt::format(".{}.{}.{}.tmp", host_name(), ::getpid(), serial));
  }
  ASSERT_FALSE(write_whole_file(folder_ / "text", "theirs"));
  EXPECT_EQ(entries_in(folder_), 1001u) << "the name was not foreseen";
  EXPECT_EQ(content_of(victim), "ours");
  EXPECT_EQ(content_of(folder_ / "text"), "theirs");
  EXPECT_FALSE(fs::is_symlink(folder_ / "text"));
}

TEST_F(WholeFile, OldContentStaysOpenToItsReaders) {
  const fs::path path = folder_ / "text";
  ASSERT_FALSE(write_whole_file(path, "old"));
  std::ifstream reader(path);
  ASSERT_FALSE(write_whole_file(path, "new"));
  std::string word;
  reader >> word;
  EXPECT_EQ(word, "old") << "the file was replaced, not overwritten";
}

TEST_F(WholeFile, TellsWhyItCannotBeWrittenAndLeavesNothingBehind) {
  fs::create_directories(folder_ / "taken" / "inside");
  EXPECT_EQ(write_whole_file(folder_ / "taken", "text"), std::errc::is_a_directory);
  EXPECT_EQ(entries_in(folder_), 1u);
  ASSERT_FALSE(write_whole_file(folder_ / "file", ""));
  EXPECT_EQ(write_whole_file(folder_ / "file" / "below", "text"), std::errc::not_a_directory);
  EXPECT_TRUE(write_whole_file("/dev/full/text", "text"));
}

TEST_F(WholeFile, OfSeveralThreadsIsThatOfOne) {
  const fs::path path = folder_ / "text";
  std::vector<std::thread> threads;
  for (const char letter : {'a', 'b', 'c'}) {
    threads.emplace_back([&path, letter] { EXPECT_FALSE(write_whole_file(path, std::string(1 << 16, letter))); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string content = content_of(path);
  EXPECT_EQ(content, std::string(1 << 16, content.at(0)));
  EXPECT_EQ(entries_in(folder_), 1u);
}

}  // namespace
}  // namespace lockstep
