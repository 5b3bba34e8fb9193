// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/prompt_write.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <string>

#include "tests/support/streams.h"

namespace lockstep {
namespace {

const std::string kText(1000, 'x');

/// Writes until nothing is taken any more; returns how many bytes were.
std::size_t fill(int descriptor) {
  std::size_t bytes = 0;
  for (ssize_t count; (count = write_promptly(descriptor, kText)) > 0;) bytes += static_cast<std::size_t>(count);
  EXPECT_EQ(errno, EAGAIN);
  return bytes;
}

TEST(PromptWrite, DoesNotWaitForAPipeThatNobodyReads) {
  const support::Stream pipe = support::make_pipe();
  const std::size_t bytes = fill(pipe.in.get());
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(support::read_now(pipe.out).size(), bytes);
}

TEST(PromptWrite, DoesNotWaitForATerminalThatNobodyReads) {
  const support::Stream terminal = support::make_terminal();
  const Descriptor own = reopen_nonblocking(terminal.in.get());
  ASSERT_TRUE(own);
  EXPECT_GT(fill(own.get()), 0u);
}

TEST(PromptWrite, DoesNotWaitForASocketThatNobodyReads) {
  std::array<int, 2> ends;
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const Descriptor out(ends[0]), in(ends[1]);
  EXPECT_GT(fill(in.get()), 0u);
}

TEST(PromptWrite, TellsOfAReaderThatHasGone) {
  std::array<int, 2> ends;
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const Descriptor in(ends[1]);
  close(ends[0]);
  EXPECT_EQ(write_promptly(in.get(), kText), -1);  // and no SIGPIPE
  EXPECT_EQ(errno, EPIPE);
}

TEST(ReopenNonblocking, LeavesTheSharedDescriptionAsItIs) {
  for (const auto& make : {std::function([] { return support::make_pipe(); }), std::function(support::make_terminal)}) {
    const support::Stream stream = make();
    const Descriptor own = reopen_nonblocking(stream.in.get());
    ASSERT_TRUE(own);
    EXPECT_TRUE(support::is_nonblocking(own.get()));
    EXPECT_FALSE(support::is_nonblocking(stream.in.get()));
    EXPECT_EQ(write_promptly(own.get(), "text"), 4);
    EXPECT_EQ(support::read_now(stream.out), "text");
  }
}

// Their offset is shared with whoever else writes there.
TEST(ReopenNonblocking, LeavesFilesAlone) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_FALSE(reopen_nonblocking(fileno(file)));
  std::fclose(file);
  EXPECT_FALSE(reopen_nonblocking(-1));
}

}  // namespace
}  // namespace lockstep
