// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/write_stderr.h"

#include <gmock/gmock.h>
#include <poll.h>

#include <functional>
#include <regex>
#include <sstream>
#include <string>
#include <thread>

#include "tests/support/streams.h"

namespace lockstep::train {
namespace {

using support::read_now;
using support::RedirectedStderr;
using testing::StrEq;

const std::string kWords(99, 'x');

std::string read_until(const Descriptor& out, const std::string& end) {
  std::string text;
  while (!text.ends_with(end)) {
    pollfd readable{out.get(), POLLIN, 0};
    poll(&readable, 1, -1);
    text += read_now(out);
  }
  return text;
}

/// How many lines arrived, or are said to be dropped.
int lines_accounted_for(const std::string& text) {
  static const std::regex remark("lockstep: (\\d+) lines were dropped: nobody read stderr");
  int lines = 0;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    std::smatch found;
    if (line == kWords) ++lines;
    if (std::regex_match(line, found, remark)) lines += std::stoi(found[1]);
  }
  return lines;
}

class WriteStderr : public testing::Test {
 protected:
  /// What an earlier test of this process has dropped is told here.
  WriteStderr() {
    const support::Stream pipe = support::make_pipe();
    const RedirectedStderr redirected(pipe.in);
    write_stderr("");
  }
};

TEST_F(WriteStderr, PassesOnMoreThanAPipeHolds) {
  const support::Stream pipe = support::make_pipe();
  const std::string text = std::string(100'000, 'x') + "\n";
  std::string read;
  std::thread reader([&] { read = read_until(pipe.out, "\n"); });
  {
    const RedirectedStderr redirected(pipe.in);
    write_stderr(text, Words::kLast);
  }
  reader.join();
  EXPECT_THAT(read, StrEq(text));
}

// A terminal after Ctrl-S, `2>&1 | less`: warnings come by the thousand, and few of them wait.
TEST_F(WriteStderr, DropsAndCountsWhatNobodyReads) {
  constexpr int kLines = 10'000;
  for (const auto& make : {std::function([] { return support::make_pipe(); }), std::function(support::make_terminal)}) {
    const support::Stream stream = make();
    const RedirectedStderr redirected(stream.in);
    for (int i = 0; i < kLines; ++i) write_stderr(kWords + "\n");
    std::string text = read_now(stream.out);
    write_stderr("read again\n", Words::kLast);
    text += read_until(stream.out, "read again\n");
    EXPECT_THAT(text, testing::HasSubstr(" lines were dropped: nobody read stderr\n"));
    EXPECT_EQ(lines_accounted_for(text), kLines);
    write_stderr("and again\n");
    EXPECT_THAT(read_until(stream.out, "\n"), StrEq("and again\n"));
  }
}

TEST_F(WriteStderr, LeavesTheSharedDescriptionAsItIs) {
  const support::Stream pipe = support::make_pipe();
  const RedirectedStderr redirected(pipe.in);
  write_stderr("text\n");
  EXPECT_FALSE(support::is_nonblocking(pipe.in.get()));
}

TEST_F(WriteStderr, DoesNotWaitForAReaderThatHasGone) {
  support::Stream terminal = support::make_terminal();
  const RedirectedStderr redirected(terminal.in);
  terminal.out.reset();
  // Each would wait for a second.
  for (int i = 0; i < 1000; ++i) write_stderr("words\n", Words::kLast);
}

}  // namespace
}  // namespace lockstep::train
