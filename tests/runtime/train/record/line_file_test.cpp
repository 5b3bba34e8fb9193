// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/line_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

namespace {

thread_local constinit int interruptions = 0;

}  // namespace

// In place of the C library's: a network file system's call may be interrupted, a local one's never is.
extern "C" int fdatasync(int file) {
  if (interruptions == 0) return static_cast<int>(syscall(SYS_fdatasync, file));
  --interruptions;
  errno = EINTR;
  return -1;
}

namespace lockstep::train {
namespace {

TEST(LineFile, IsSyncedInSpiteOfASignal) {
  std::string pattern = (std::filesystem::temp_directory_path() / "lockstep-lines-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  LineFile file(folder / "metrics.jsonl");
  file.append("{}\n");
  interruptions = 2;
  file.sync();
  EXPECT_EQ(interruptions, 0) << "the call was not made again";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::train
