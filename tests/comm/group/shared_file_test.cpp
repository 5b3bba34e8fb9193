// SPDX-License-Identifier: Apache-2.0
#include "comm/group/shared_memory/shared_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>

namespace lockstep::comm {
namespace {

using Kind = MemoryName::Kind;

constexpr std::size_t kBytes = 3 * 4096;

class SharedFileOf : public testing::TestWithParam<Kind> {};

INSTANTIATE_TEST_SUITE_P(, SharedFileOf, testing::Values(Kind::kDescriptor, Kind::kFile),
                         [](const auto& kind) { return kind.param == Kind::kDescriptor ? "Descriptor" : "File"; });

TEST_P(SharedFileOf, EveryMappingSeesTheSameZeroedMemory) {
  std::optional<SharedFile> file(std::in_place, GetParam(), kBytes);
  const Mapping one(file->name(), kBytes);
  const Mapping other(file->name(), kBytes);
  ASSERT_TRUE(one && other);
  EXPECT_NE(one.data(), other.data());
  EXPECT_TRUE(populate(one.data(), kBytes));
  EXPECT_EQ(other.data()[kBytes - 1], std::byte{0});
  one.data()[kBytes - 1] = std::byte{7};
  EXPECT_EQ(other.data()[kBytes - 1], std::byte{7});
  // It outlives the file, which nobody can open any more.
  const MemoryName name = file->name();
  file.reset();
  EXPECT_FALSE(Mapping(name, kBytes));
  one.data()[0] = std::byte{8};
  EXPECT_EQ(other.data()[0], std::byte{8});
  if (GetParam() == Kind::kFile) {
    EXPECT_FALSE(std::filesystem::exists(std::string("/dev/shm") + name.file));
  }
}

TEST_P(SharedFileOf, AnotherFileOfThatNameIsNotTaken) {
  const SharedFile file(GetParam(), kBytes);
  MemoryName name = file.name();
  ++name.inode;
  EXPECT_FALSE(Mapping(name, kBytes));
}

TEST_P(SharedFileOf, TheSystemSaysHowMuchIsFree) { EXPECT_GT(free_bytes(GetParam()), 0); }

TEST(SharedFile, OfAKilledMakerIsRemovedByTheNextAndNoOtherIs) {
  const auto place = [](const MemoryName& name) { return std::filesystem::path(std::string("/dev/shm") + name.file); };
  const SharedFile living(Kind::kFile, kBytes);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t maker = fork();
  if (maker == 0) {
    const SharedFile left(Kind::kFile, kBytes);
    if (write(ends[1], &left.name(), sizeof(MemoryName)) != sizeof(MemoryName)) _exit(1);
    raise(SIGKILL);
  }
  MemoryName left;
  ASSERT_EQ(read(ends[0], &left, sizeof left), static_cast<ssize_t>(sizeof left));
  waitpid(maker, nullptr, 0);
  const SharedFile next(Kind::kFile, kBytes);
  EXPECT_FALSE(std::filesystem::exists(place(left)));
  EXPECT_TRUE(std::filesystem::exists(place(living.name())));
  for (const int end : ends) close(end);
}

TEST(SharedFile, NoneIsNone) {
  const SharedFile none;
  EXPECT_FALSE(Mapping(none.name(), kBytes));
  EXPECT_FALSE(Mapping(SharedFile(Kind::kNone, kBytes).name(), kBytes));
}

}  // namespace
}  // namespace lockstep::comm
