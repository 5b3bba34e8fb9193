// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/child_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>

#include "runtime/base/error.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

void make_program(const Folder& folder, const std::string& script) {
  write_text(folder / "program", "#!/bin/sh\n" + script);
  std::filesystem::permissions(folder / "program", std::filesystem::perms::owner_all);
}

TEST(ChildProcess, HandsOutWhatItPrintsAndHowItEnds) {
  const Folder folder;
  make_program(folder, "echo out; echo \"$COLOR\" >&2; exit 5\n");
  ChildProcess process({{(folder / "program").string()}, {{"COLOR", "red"}}});
  while (!process.ended()) usleep(1000);
  EXPECT_EQ(process.exit_code(), 5);
  char text[16] = {};
  EXPECT_EQ(read(process.output(), text, sizeof text), 4);
  EXPECT_STREQ(text, "out\n");
  char message[16] = {};
  EXPECT_EQ(read(process.messages(), message, sizeof message), 4);
  EXPECT_STREQ(message, "red\n");
}

TEST(ChildProcess, ThatIsKilledEndsAsAShellSaysIt) {
  const Folder folder;
  make_program(folder, "exec sleep 60\n");
  ChildProcess process({{(folder / "program").string()}, {}});
  EXPECT_FALSE(process.ended());
  process.signal(SIGTERM);
  while (!process.ended()) usleep(1000);
  EXPECT_EQ(process.exit_code(), 128 + SIGTERM);
}

/// The child whose number a program prints.
ProcessWatch printed_child(const ChildProcess& process) {
  pollfd output{process.output(), POLLIN, 0};
  EXPECT_EQ(poll(&output, 1, 60'000), 1);
  char text[16] = {};
  EXPECT_GT(read(process.output(), text, sizeof text - 1), 1);
  return ProcessWatch(static_cast<pid_t>(std::stol(text)));
}

bool ends(const ProcessWatch& child) {
  pollfd gone{child.descriptor(), POLLIN, 0};
  return poll(&gone, 1, 60'000) == 1;
}

TEST(ChildProcess, IsKilledWithWhatItHasStarted) {
  const Folder folder;
  make_program(folder, "sleep 1000 &\necho $!\nwait\n");
  ChildProcess process({{(folder / "program").string()}, {}});
  const ProcessWatch child = printed_child(process);
  ASSERT_FALSE(child.gone());
  process.kill_with_children();
  EXPECT_TRUE(ends(child));
}

TEST(ChildProcess, LeavesNothingBehindWhereItHasEndedByItself) {
  const Folder folder;
  make_program(folder, "sleep 1000 &\necho $!\nwait\n");
  ChildProcess process({{(folder / "program").string()}, {}});
  const ProcessWatch child = printed_child(process);
  process.watch_children();
  process.signal(SIGKILL);
  while (!process.ended()) usleep(1000);
  ASSERT_FALSE(child.gone());
  process.kill_with_children();
  EXPECT_TRUE(ends(child));
}

TEST(ChildProcess, ThatCannotStartIsAnError) {
  EXPECT_THROW(ChildProcess({{"/nonexistent/program"}, {}}), EnvironmentError);
}

}  // namespace
}  // namespace lockstep::launcher
