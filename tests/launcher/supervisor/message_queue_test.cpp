// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/message_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <stdexcept>
#include <string>

#include "runtime/base/descriptor.h"

namespace lockstep::launcher {
namespace {

using std::chrono::milliseconds;

/// A pipe, of which a queue has one end.
class Reader {
 public:
  Reader() {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
    reading_.reset(ends[0]);
    writing_.reset(ends[1]);
    fcntl(reading_.get(), F_SETFL, O_NONBLOCK);
  }
  int target() const { return writing_.get(); }
  void go_away() { reading_.reset(); }
  /// What has come until now.
  std::string read_all() const {
    std::string text;
    std::array<char, 4096> buffer;
    for (ssize_t count = 0; (count = read(reading_.get(), buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

 private:
  Descriptor reading_;
  Descriptor writing_;
};

std::string lines(int count) {
  std::string text;
  for (int line = 0; line < count; ++line) text += "line " + std::to_string(line) + "\n";
  return text;
}

TEST(MessageQueue, WritesAllWithoutWaitingForWhoReads) {
  const Reader reader;
  MessageQueue queue(reader.target());
  const std::string text = lines(20'000);
  queue.push(text);
  std::string read;
  while (queue.waits()) {
    queue.write();
    read += reader.read_all();
  }
  EXPECT_EQ(read, text);
  EXPECT_EQ(queue.finish(milliseconds(0)), 0u);
}

TEST(MessageQueue, CountsTheLinesThatNobodyReads) {
  const Reader reader;
  MessageQueue queue(reader.target());
  const std::string line = std::string(1023, 'x') + "\n";
  const std::size_t most = MessageQueue::kMostBytes / line.size();
  for (std::size_t i = 0; i < most + 5; ++i) queue.push(line);
  const std::uint64_t dropped = queue.finish(milliseconds(10));
  EXPECT_EQ(dropped, most + 5 - reader.read_all().size() / line.size());
  EXPECT_FALSE(queue.waits());
}

TEST(MessageQueue, KeepsNothingForAReaderThatIsGone) {
  std::signal(SIGPIPE, SIG_IGN);
  Reader reader;
  reader.go_away();
  MessageQueue queue(reader.target());
  queue.push("one\ntwo\n");
  queue.write();
  EXPECT_FALSE(queue.waits());
  EXPECT_EQ(queue.finish(milliseconds(0)), 2u);
}

}  // namespace
}  // namespace lockstep::launcher
