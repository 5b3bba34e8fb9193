// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/stdout_relay.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <thread>

#include "runtime/base/process.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// A process whose stdout and stderr are pipes, which prints through a relay.
class Printer {
 public:
  explicit Printer(const std::function<void()>& print) {
    int out[2], err[2];
    if (pipe(out) != 0 || pipe(err) != 0) throw std::runtime_error("no pipe");
    std::fflush(stdout);
    pid_ = fork();
    if (pid_ == 0) {
      std::signal(SIGPIPE, SIG_IGN);
      dup2(out[1], STDOUT_FILENO);
      dup2(err[1], STDERR_FILENO);
      for (const int end : {out[0], out[1], err[0], err[1]}) close(end);
      {
        StdoutRelay relay([](const std::string& loss) { std::fputs(loss.c_str(), stderr); });
        print();
      }
      _exit(7);
    }
    out_.reset(out[0]), err_.reset(err[0]);
    close(out[1]), close(err[1]);
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
