// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/memory_room.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <fstream>
#include <new>
#include <system_error>

#include "runtime/tensor/as_error.h"
#include "runtime/tensor/cpu_allocator.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::MatchesRegex;

/// Control groups as files in a folder of the test's own.
class RoomInGroups : public testing::Test {
 protected:
  RoomInGroups() {
    std::string path = fs::temp_directory_path() / "lockstep-test-XXXXXX";
    mount_ = mkdtemp(path.data());
  }
  ~RoomInGroups() override { fs::remove_all(mount_); }

  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((mount_ / file).parent_path());
    std::ofstream(mount_ / file) << text;
  }

  fs::path mount_;
};

TEST_F(RoomInGroups, IsUnknownWhereNobodyLimits) {
  write("a/memory.max", "max\n");
  write("a/memory.current", "1000\n");
  write("memory/b/memory.limit_in_bytes", "9223372036854771712\n");
  write("memory/b/memory.usage_in_bytes", "1000\n");
  EXPECT_EQ(room_in_groups("0::/a\n4:memory:/b\n", mount_), std::nullopt);
}

TEST_F(RoomInGroups, IsThatOfTheNarrowestGroup) {
  write("a/memory.max", "5000\n");
  write("a/memory.current", "4000\n");
  write("a/b/memory.max", "9000\n");
  write("a/b/memory.current", "3000\n");
  EXPECT_EQ(room_in_groups("0::/a/b\n", mount_), 1000u);
  write("memory/job/memory.limit_in_bytes", "700\n");
  write("memory/job/memory.usage_in_bytes", "800\n");
  EXPECT_EQ(room_in_groups("0::/a/b\n4:memory:/job\n", mount_), 0u) << "a limit may be lowered below what is used";
}

// A container that has read its data once would otherwise seem full for ever.
TEST_F(RoomInGroups, CountsNotWhatTheKernelKeepsOfFiles) {
  write("a/memory.max", "5000\n");
  write("a/memory.current", "4900\n");
  write("a/memory.stat", "anon 1000\ninactive_file 3000\nactive_file 900\nshmem 10\n");
  EXPECT_EQ(room_in_groups("0::/a\n", mount_), 4000u);
  write("memory/job/memory.limit_in_bytes", "700\n");
  write("memory/job/memory.usage_in_bytes", "700\n");
  write("memory/job/memory.stat", "active_file 1\ntotal_active_file 100\ntotal_inactive_file 200\n");
  EXPECT_EQ(room_in_groups("0::/a\n4:memory:/job\n", mount_), 300u);
}

TEST(MemoryRoom, IsAsLittleAsTheNarrowestLimitLeaves) {
  EXPECT_EQ(least_of({}), std::nullopt);
  EXPECT_EQ(least_of({.machine = 7, .group = 5, .address_space = {}}), 5u);
  EXPECT_EQ(least_of({.machine = {}, .group = 5, .address_space = 3}), 3u);
}

TEST(MemoryRoom, OfThisMachineIsKnown) {
  EXPECT_GT(memory_room().machine.value_or(0), 0u);
  EXPECT_THAT(str(memory_room()), MatchesRegex("[0-9]+ MiB are free on this machine.*"));
}

const char* const kFacts = ".* MiB are free on this machine.*; this process holds [0-9]+ MiB, in use: .*";

TEST(MemoryErrors, SayWhatWasAskedAndWhatThereIs) {
  try {
    CpuAllocator::instance().allocate(std::size_t{1} << 60);
    FAIL();
  } catch (const MemoryError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot allocate 1152921504606846976 bytes on the CPU: "));
    EXPECT_THAT(error.what(), MatchesRegex(kFacts));
  }
}

TEST(MemoryErrors, AreWhatContainersRunInto) {
  EXPECT_EQ(as_error(std::bad_alloc()).code(), ExitCode::kMemory);
  EXPECT_THAT(as_error(std::bad_alloc()).what(), MatchesRegex(kFacts));
  EXPECT_EQ(as_error(std::system_error(ENOMEM, std::generic_category())).code(), ExitCode::kMemory);
}

TEST(ThreadErrors, AreALackOfTheMachine) {
  const Error error = as_error(std::system_error(EAGAIN, std::generic_category()));
  EXPECT_EQ(error.code(), ExitCode::kEnvironment);
  EXPECT_THAT(error.what(), HasSubstr("this machine lacks threads"));
  EXPECT_THAT(error.advice(), HasSubstr("ulimit -u"));
}

}  // namespace
}  // namespace lockstep
