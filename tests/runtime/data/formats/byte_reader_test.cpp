// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/byte_reader.h"

#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/error.h"
#include "runtime/data/cifar.h"
#include "tests/runtime/data/sample_files.h"

namespace {

/// What this thread's reads meet: an error, so many times, after so many calls that succeed.
struct Fault {
  int error = 0;
  int times = 0;
  int after = 0;
};
thread_local constinit Fault fault;

bool fails() {
  if (fault.times == 0 || fault.after-- > 0) return false;
  fault.after = 0;
  --fault.times;
  errno = fault.error;
  return true;
}

}  // namespace

// In place of the C library's, also for zlib: a network file system's calls may be interrupted, a local one's never
// are.
extern "C" ssize_t read(int file, void* bytes, std::size_t count) {
  return fails() ? -1 : syscall(SYS_read, file, bytes, count);
}
extern "C" ssize_t pread(int file, void* bytes, std::size_t count, off_t offset) {
  return fails() ? -1 : syscall(SYS_pread64, file, bytes, count, offset);
}

namespace lockstep::data {
namespace {

using ::testing::HasSubstr;

class InterruptedRead : public testing::Test {
 protected:
  InterruptedRead() {
    content_.resize(1 << 20);
    for (std::size_t i = 0; i < content_.size(); ++i) content_[i] = static_cast<std::uint8_t>(i * i >> 7);
  }
  ~InterruptedRead() override { fault = {}; }

  TemporaryFolder folder_;
  Bytes content_;
};

TEST_F(InterruptedRead, OfAFileGoesOn) {
  for (const Bytes& stored : {content_, gzipped(content_)}) {
    ByteReader reader(folder_.write("file", stored));
    Bytes read;
    while (read.size() < content_.size()) {
      fault = {.error = EINTR, .times = 2, .after = static_cast<int>(read.size() / 1000 % 2)};
      const Bytes piece = reader.read(content_.size() / 64);
      read.insert(read.end(), piece.begin(), piece.end());
    }
    EXPECT_EQ(read, content_);
    fault = {};
    reader.expect_end();
  }
}

TEST_F(InterruptedRead, OfADeviceThatFailsIsNoDamage) {
  ByteReader reader(folder_.write("file", content_));
  fault = {.error = EIO, .times = 1};
  try {
    reader.read(1000);
    FAIL() << "was read";
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("file after 0 bytes: Input/output error"));
    EXPECT_THAT(error.advice(), HasSubstr("The device reports a failure"));
  }
}

TEST_F(InterruptedRead, OfTheLabelsOfCifarGoesOn) {
  Bytes records(2 * 3073);
  records[3073] = 7;
  const CifarOptions options{{folder_.write("batch.bin", records)}};
  fault = {.error = EINTR, .times = 1, .after = 1};
  EXPECT_THAT(CifarKind::describe(options).labels, testing::ElementsAre(0, 7));
  fault = {.error = EIO, .times = 1, .after = 1};
  EXPECT_THAT(error_of([&] { CifarKind::describe(options); }), HasSubstr("batch.bin at byte 3073: Input/output error"));
}

}  // namespace
}  // namespace lockstep::data
