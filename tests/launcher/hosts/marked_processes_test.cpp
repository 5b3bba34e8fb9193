// SPDX-License-Identifier: Apache-2.0
#include "launcher/hosts/marked_processes.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

/// Goes on until it is killed, with `name` in its command line.
class Going {
 public:
  explicit Going(const std::string& name)
      : program_({"sh", "-c", "echo begun; while :; do sleep 0.01; done", name}, folder_.path()) {
    while (read_text(folder_ / "stdout").empty()) usleep(1000);
  }
  const Program* operator->() const { return &program_; }

 private:
  Folder folder_;
  Program program_;
};

TEST(MarkedProcesses, AreKilledAndNoOthers) {
  const std::string mark = "mark-of-the-test-of-process-" + std::to_string(getpid());
  const Going marked(mark), other("mark-of-another");
  kill_marked(mark);
  EXPECT_EQ(marked->wait().code, 128 + SIGKILL);
  other->signal(SIGTERM);
  EXPECT_EQ(other->wait().code, 128 + SIGTERM);
}

TEST(MarkedProcesses, AreKilledByNoMarkThatOthersHave) {
  for (const char* mark : {"", "lockstep", "lockstep-a-71"}) EXPECT_THROW(kill_marked(mark), UsageError) << mark;
}

}  // namespace
}  // namespace lockstep::launcher
