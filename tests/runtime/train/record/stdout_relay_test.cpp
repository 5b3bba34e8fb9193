// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/stdout_relay.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/process.h"
#include "tests/support/no_threads.h"
#include "tests/support/streams.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kPipeBytes = 65536;

/// Prints through a relay.
void relay_what(const std::function<void()>& print) {
  const StdoutRelay relay([](const std::string& loss) { std::fputs(loss.c_str(), stderr); });
  print();
}

/// A process whose stdout is `out`, and whose stderr is a pipe.
class Printer {
 public:
  explicit Printer(const std::function<void()>& print, support::Stream out = support::make_pipe(kPipeBytes))
      : Printer(std::move(out), [&] { relay_what(print); }) {}
  /// One that makes its relay by itself.
  Printer(support::Stream out, const std::function<void()>& run) {
    support::Stream err = support::make_pipe(kPipeBytes);
    std::fflush(stdout);
    pid_ = fork();
    if (pid_ == 0) {
      std::signal(SIGPIPE, SIG_IGN);
      dup2(out.in.get(), STDOUT_FILENO);
      dup2(err.in.get(), STDERR_FILENO);
      for (Descriptor* const end : {&out.out, &out.in, &err.out, &err.in}) end->reset();
      run();
      _exit(7);
    }
    out_ = std::move(out.out);
    err_ = std::move(err.out);
  }
  ~Printer() {
    if (!ended_) signal_child(pid_, SIGKILL), wait();
  }

  /// Its exit code, whether or not anybody reads.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string out() const { return all_of(out_); }
  std::string err() const { return all_of(err_); }
  void stop_reading() { out_.reset(); }

 private:
  static std::string all_of(const Descriptor& pipe) {
    std::string text;
    char buffer[65536];
    for (ssize_t count; (count = read(pipe.get(), buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(count));
    }
    return text;
  }

  pid_t pid_;
  bool ended_ = false;
  Descriptor out_, err_;
};

const std::string kLine(99, 'x');

void print_lines(int count) {
  for (int i = 0; i < count; ++i) std::printf("%s\n", kLine.c_str());
}

TEST(StdoutRelay, PassesOnAllThatIsPrinted) {
  Printer printer([] {
    print_lines(20000);
    std::printf("the end");
  });
  const std::string text = printer.out();
  EXPECT_EQ(text.size(), 20000 * 100 + std::string("the end").size());
  EXPECT_TRUE(text.ends_with("\nthe end"));
  EXPECT_EQ(printer.wait(), 7);
  EXPECT_THAT(printer.err(), IsEmpty());
}

// A stopped terminal, a log collector that hangs.
TEST(StdoutRelay, DoesNotWaitForAReaderThatTakesNothing) {
  Printer printer([] { print_lines(200'000); });  // 20 MB
  EXPECT_EQ(printer.wait(), 7);
  EXPECT_THAT(printer.err(), HasSubstr(" lines of output were dropped: nobody read them"));
}

// poll() calls it ready while there is room for a byte, and a write of more would wait for the rest.
TEST(StdoutRelay, DoesNotWaitForATerminalThatNobodyReads) {
  Printer printer([] { print_lines(200'000); }, support::make_terminal());
  EXPECT_EQ(printer.wait(), 7);
  EXPECT_THAT(printer.err(), HasSubstr(" lines of output were dropped: nobody read them"));
}

/// This process gets `count` more descriptors.
void limit_descriptors(int count) {
  std::vector<Descriptor> more;
  for (int i = 0; i <= count; ++i) more.emplace_back(dup(STDOUT_FILENO));
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = static_cast<rlim_t>(more.back().get());
  setrlimit(RLIMIT_NOFILE, &limit);
}

// A terminal that cannot be opened anew, as that of another user: then nothing but a write that waits is left.
TEST(StdoutRelay, EndsBesideAWriteThatDoesNotReturn) {
  Printer printer(support::make_terminal(), [] {
    limit_descriptors(4);  // a pipe's two, that of the thread's event, and stdout's as it was
    relay_what([] { print_lines(500); });
  });
  EXPECT_EQ(printer.wait(), 7);
  EXPECT_THAT(printer.err(), HasSubstr(" lines of output were dropped: nobody read them"));
}

TEST(StdoutRelay, SettlesOnceForAReaderThatTakesNothing) {
  Printer printer([] {
    print_lines(10'000);  // 1 MB
    for (int i = 0; i < 10'000; ++i) StdoutRelay::settle();
  });
  EXPECT_EQ(printer.wait(), 7);
}

TEST(StdoutRelay, LeavesStdoutAsItWas) {
  const auto print = [] {
    relay_what([] { std::printf("through the relay\n"); });
    if (!support::is_nonblocking(STDOUT_FILENO)) std::printf("as it was\n");
    std::fflush(stdout);
  };
  Printer into_pipe(support::make_pipe(), print);
  EXPECT_EQ(into_pipe.out(), "through the relay\nas it was\n");
  Printer into_terminal(support::make_terminal(), print);
  EXPECT_EQ(into_terminal.out(), "through the relay\nas it was\n");
}

// A shell's `{ one; lockstep; } > file` goes on where it ends.
TEST(StdoutRelay, SharesTheOffsetOfAFile) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const auto say = [&](const std::string& text) {
    return write(fileno(file), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  };
  EXPECT_TRUE(say("before\n"));
  Printer printer([] { std::printf("through the relay\n"); }, {Descriptor(), Descriptor(dup(fileno(file)))});
  EXPECT_EQ(printer.wait(), 7);
  EXPECT_TRUE(say("behind\n"));
  char text[100] = {};
  EXPECT_GT(pread(fileno(file), text, sizeof text - 1, 0), 0);
  EXPECT_STREQ(text, "before\nthrough the relay\nbehind\n");
  std::fclose(file);
}

TEST(StdoutRelay, LeavesStdoutAsItIsWhereTheSystemStartsNoThread) {
  const auto print = [] {
    const support::NoMoreThreads no_more;
    try {
      relay_what([] { std::printf("not to be printed\n"); });
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::resource_unavailable_try_again) std::printf("no thread\n");
    }
    StdoutRelay::settle();
    if (StdoutRelay::descriptor() == STDOUT_FILENO) std::printf("no relay\n");
    std::fflush(stdout);
  };
  Printer printer(support::make_pipe(), print);
  EXPECT_EQ(printer.wait(), 7);
  EXPECT_EQ(printer.out(), "no thread\nno relay\n");
}

TEST(StdoutRelay, DropsWholeLines) {
  Printer printer([] {
    print_lines(200'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the reader is slow at first
  std::istringstream lines(printer.out());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_EQ(line, kLine);
  EXPECT_GT(count, 0);
  EXPECT_EQ(printer.wait(), 7);
}

TEST(StdoutRelay, OutlivesAReaderThatGoesAway) {
  Printer printer([] { print_lines(200'000); });
  printer.stop_reading();
  EXPECT_EQ(printer.wait(), 7);
  EXPECT_THAT(printer.err(), IsEmpty());
}

TEST(StdoutRelay, LetsStderrComeBehindWhatWasPrinted) {
  Printer printer([] {
    dup2(StdoutRelay::descriptor(), STDERR_FILENO);
    for (int i = 0; i < 200; ++i) {
      std::printf("out\n");
      StdoutRelay::settle();
      std::fputs("err\n", stderr);
    }
  });
  std::string expected;
  for (int i = 0; i < 200; ++i) expected += "out\nerr\n";
  EXPECT_EQ(printer.out(), expected);
}

}  // namespace
}  // namespace lockstep::train
