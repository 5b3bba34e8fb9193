// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/plan_cache/plan_cache.h"

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/error.h"

namespace lockstep::kernels {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::ThrowsMessage;

/// A folder of its own, removed at the end, and what is logged meanwhile.
class PlanCacheTest : public ::testing::Test {
 protected:
  PlanCacheTest() {
    std::string pattern = (fs::temp_directory_path() / "lockstep-plans-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
    folder_ = pattern;
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(log_);
    previous_ = spdlog::default_logger();
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
  }
  ~PlanCacheTest() override {
    spdlog::set_default_logger(previous_);
    fs::remove_all(folder_);
  }

  /// In a folder that does not exist yet.
  PlanCache cache() const { return PlanCache(folder_ + "/a/b"); }
  std::string log() const { return log_.str(); }
  static void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string folder_;

 private:
  std::ostringstream log_;
  std::shared_ptr<spdlog::logger> previous_;
};

TEST_F(PlanCacheTest, WhatWasKeptIsFoundByEveryLaterCache) {
  EXPECT_EQ(cache().find("key"), std::nullopt);
  EXPECT_THAT(cache().keep("key", "eng0_k2=9"), Optional(std::string("eng0_k2=9")));
  EXPECT_THAT(cache().keep("other", ""), Optional(std::string()));
  EXPECT_THAT(cache().find("key"), Optional(std::string("eng0_k2=9")));
  EXPECT_THAT(cache().find("other"), Optional(std::string()));
  EXPECT_EQ(cache().find("third"), std::nullopt);
  EXPECT_EQ(log(), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ + "/a/b"), {}), 2) << "temporary files stay behind";
}

TEST_F(PlanCacheTest, TheFirstValueStaysAndIsWhatLaterOnesGet) {
  EXPECT_THAT(cache().keep("key", "first"), Optional(std::string("first")));
  EXPECT_THAT(cache().keep("key", "second"), Optional(std::string("first")));
  EXPECT_THAT(cache().find("key"), Optional(std::string("first")));
}

TEST_F(PlanCacheTest, WritersThatCollideAllGetTheSameValue) {
  constexpr int kWriters = 8, kKeys = 50;
  std::vector<std::vector<std::string>> got(kWriters);
  std::atomic<int> ready = 0;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      for (int key = 0; key < kKeys; ++key) {
        ++ready;
        while (ready.load() < kWriters * (key + 1)) std::this_thread::yield();
        got[static_cast<std::size_t>(writer)].push_back(
            cache().keep("key " + std::to_string(key), "writer " + std::to_string(writer)).value_or("nothing"));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (const auto& values : got) EXPECT_EQ(values, got.front());
  for (int key = 0; key < kKeys; ++key) {
    EXPECT_EQ(cache().find("key " + std::to_string(key)), got.front()[static_cast<std::size_t>(key)]);
  }
  EXPECT_EQ(log(), "");
}

TEST_F(PlanCacheTest, DamageIsIgnoredLoggedOnceAndReplaced) {
  cache().keep("key", "value");
  const std::string path = cache().path_of("key");
  const std::string whole = read(path);
  std::set<std::string> damaged{"", "\n", whole + "x", std::string(100'000, 'x'), std::string("\0\xff\n\n\n", 5)};
  for (std::size_t size = 0; size < whole.size(); ++size) {
    damaged.insert(whole.substr(0, size));
    std::string flipped = whole;
    flipped[size] = static_cast<char>(flipped[size] ^ 1);
    damaged.insert(flipped);
  }
  for (const std::string& text : damaged) {
    write(path, text);
    const std::size_t before = log().size();
    EXPECT_EQ(cache().find("key"), std::nullopt) << text;
    const std::string line = log().substr(before);
    EXPECT_THAT(line, HasSubstr(path));
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
  }
  EXPECT_THAT(cache().keep("key", "new"), Optional(std::string("new")));
  EXPECT_THAT(cache().find("key"), Optional(std::string("new")));
}

TEST_F(PlanCacheTest, AnotherKeysFileIsForeign) {
  cache().keep("key", "value");
  fs::copy_file(cache().path_of("key"), cache().path_of("other"));
  EXPECT_EQ(cache().find("other"), std::nullopt);
  EXPECT_THAT(log(), HasSubstr("other"));
}

TEST_F(PlanCacheTest, AFolderThatCannotBeWrittenIsALineInTheLog) {
  write(folder_ + "/file", "");
  const PlanCache below_a_file(folder_ + "/file/cache");
  EXPECT_EQ(below_a_file.find("key"), std::nullopt);
  EXPECT_EQ(log(), "");
  EXPECT_EQ(below_a_file.keep("key", "value"), std::nullopt);
  EXPECT_THAT(log(), HasSubstr("cannot keep a plan in " + folder_));
}

TEST_F(PlanCacheTest, AFolderInAFilesPlaceIsIgnored) {
  fs::create_directories(cache().path_of("key") + "/inside");
  EXPECT_EQ(cache().find("key"), std::nullopt);
  EXPECT_EQ(cache().keep("key", "value"), std::nullopt);
}

TEST_F(PlanCacheTest, WithoutAFolderNothingIsKept) {
  EXPECT_EQ(PlanCache("").keep("key", "value"), std::nullopt);
  EXPECT_EQ(PlanCache("").find("key"), std::nullopt);
  EXPECT_EQ(log(), "");
}

TEST_F(PlanCacheTest, TextOfSeveralLinesOrOfEndlessOnesIsRefused) {
  EXPECT_THROW(cache().keep("a\nkey", "value"), UsageError);
  EXPECT_THROW(cache().keep("key", "value\n"), UsageError);
  EXPECT_THROW(cache().keep("key", std::string(5000, 'x')), UsageError);
  EXPECT_THAT(cache().keep("key", std::string(4096, 'x')), Optional(std::string(4096, 'x')));
  EXPECT_THAT(cache().find("key"), Optional(std::string(4096, 'x')));
}

/// plan_settings() with these variables and no others.
class PlanSettingsTest : public ::testing::Test {
 protected:
  PlanSettingsTest() {
    for (const char* name : kNames) ::unsetenv(name);
  }
  ~PlanSettingsTest() override {
    for (const char* name : kNames) ::unsetenv(name);
  }
  static void set(const char* name, const char* value) { ::setenv(name, value, 1); }

 private:
  static constexpr const char* kNames[] = {"LOCKSTEP_PLAN_CACHE", "LOCKSTEP_AUTOTUNE", "XDG_CACHE_HOME", "HOME"};
};

TEST_F(PlanSettingsTest, TheFolderIsWhatTheUserSaidOrTheUsersCache) {
  EXPECT_EQ(plan_settings().folder, "");
  set("HOME", "/there");
  EXPECT_EQ(plan_settings().folder, "/there/.cache/lockstep");
  set("XDG_CACHE_HOME", "relative");
  EXPECT_EQ(plan_settings().folder, "/there/.cache/lockstep");
  set("XDG_CACHE_HOME", "/cache");
  EXPECT_EQ(plan_settings().folder, "/cache/lockstep");
  set("LOCKSTEP_PLAN_CACHE", "plans");
  EXPECT_EQ(plan_settings().folder, "plans");
  set("LOCKSTEP_PLAN_CACHE", "off");
  EXPECT_EQ(plan_settings().folder, "");
  EXPECT_FALSE(plan_settings().autotune);
}

TEST_F(PlanSettingsTest, AutotuningIsOffUnlessAskedForAndNeedsACache) {
  set("LOCKSTEP_AUTOTUNE", "off");
  EXPECT_FALSE(plan_settings().autotune);
  set("LOCKSTEP_AUTOTUNE", "1");
  EXPECT_THAT(plan_settings, ThrowsMessage<UsageError>(HasSubstr("on or off, found \"1\"")));
  set("LOCKSTEP_AUTOTUNE", "on");
  EXPECT_THAT(plan_settings, ThrowsMessage<UsageError>(HasSubstr("without a plan cache")));
  set("HOME", "/there");
  EXPECT_TRUE(plan_settings().autotune);
}

}  // namespace
}  // namespace lockstep::kernels
