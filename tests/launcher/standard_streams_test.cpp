// SPDX-License-Identifier: Apache-2.0
#include "launcher/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace lockstep::launcher {
namespace {

/// What a process of its own returns.
int code_of(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool is_device(int number) {
  struct stat status {};
  return fstat(number, &status) == 0 && S_ISCHR(status.st_mode);
}

TEST(StandardStreams, ThatCameClosedLeadNowhere) {
  const auto open_all = [] {
    for (int number = 0; number <= 2; ++number) close(number);
    open_standard_streams();
    for (int number = 0; number <= 2; ++number) {
      if (!is_device(number)) return 10 + number;
    }
    return write(STDERR_FILENO, "words", 5) == 5 && open("/dev/null", O_RDONLY) > STDERR_FILENO ? 0 : 1;
  };
  EXPECT_EQ(code_of(open_all), 0);
}

TEST(StandardStreams, ThatAreOpenStayAsTheyAre) {
  const auto close_one = [] {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    dup2(ends[1], STDOUT_FILENO);
    close(STDERR_FILENO);
    open_standard_streams();
    if (write(STDOUT_FILENO, "words", 5) != 5) return 2;
    char words[5];
    return read(ends[0], words, sizeof words) == 5 && is_device(STDERR_FILENO) ? 0 : 3;
  };
  EXPECT_EQ(code_of(close_one), 0);
}

}  // namespace
}  // namespace lockstep::launcher
