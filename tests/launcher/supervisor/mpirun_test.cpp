// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/mpirun.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "launcher/supervisor/mpirun_messages.h"
#include "runtime/base/error.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

const std::string kDashes(74, '-');

/// A directory with a program called mpirun.
void make_mpirun(const Folder& folder, const std::string& script) {
  write_text(folder / "mpirun", "#!/bin/sh\n" + script);
  std::filesystem::permissions(folder / "mpirun", std::filesystem::perms::owner_all);
}

TEST(MpirunCommand, StartsThisProgramAsManyTimesAsAsked) {
  const Folder folder;
  make_mpirun(folder, "");
  const char* old_path = std::getenv("PATH");
  const std::string path = folder.path().string() + ":" + (old_path == nullptr ? "" : old_path);
  setenv("PATH", path.c_str(), 1);
  const ChildCommand command = mpirun_command(3, "", {"train", "JOB"}, {{"COLOR", "red"}});
  EXPECT_EQ(command.arguments.front(), (folder / "mpirun").string());
  EXPECT_EQ(std::vector<std::string>(command.arguments.begin() + 1, command.arguments.begin() + 3),
            (std::vector<std::string>{"-n", "3"}));
  EXPECT_EQ(std::vector<std::string>(command.arguments.end() - 2, command.arguments.end()),
            (std::vector<std::string>{"train", "JOB"}));
  EXPECT_EQ(command.environment.at("COLOR"), "red");
  EXPECT_EQ(command.environment.at("OMPI_MCA_pml"), "ob1");
  EXPECT_THAT(mpirun_command(3, "b:2,a:2", {}, {}).arguments, IsSupersetOf({"--map-by", "seq", "--host", "b,b,a,a"}));
  EXPECT_FALSE(mpirun_command(3, "a:2,b:2", {}, {}).environment.contains("OMPI_MCA_pml"));
}

TEST(MpirunCommand, LeavesTheUsersSettingsAlone) {
  setenv("OMP_NUM_THREADS", "7", 1);
  setenv("OMPI_MCA_btl", "tcp,self", 1);
  const ChildCommand command = mpirun_command(2, "", {}, {});
  EXPECT_EQ(command.environment.at("OMP_NUM_THREADS"), "7");
  EXPECT_FALSE(command.environment.contains("OMPI_MCA_btl"));
}

TEST(MpirunCommand, HandsTheUsersSettingsOnToOtherMachines) {
  setenv("LOCKSTEP_CPU_ISA", "avx2", 1);
  setenv("NCCL_DEBUG", "INFO", 1);
  setenv("LOCKSTEP_RESTART_COUNT", "7", 1);
  const ChildCommand command = mpirun_command(2, "a,b", {}, {{"LOCKSTEP_RESTART_COUNT", "0"}});
  for (const char* name : {"LOCKSTEP_CPU_ISA", "NCCL_DEBUG", "LOCKSTEP_RESTART_COUNT"}) {
    EXPECT_EQ(std::ranges::count(command.arguments, name), 1) << name;
  }
  EXPECT_EQ(command.environment.at("NCCL_DEBUG"), "INFO");
  EXPECT_EQ(command.environment.at("LOCKSTEP_RESTART_COUNT"), "0");
}

TEST(MpirunCommand, TellsMpirunTheNetworkBetweenHosts) {
  setenv("LOCKSTEP_INTERFACE", "10.0.0.0/24", 1);
  const ChildCommand hosts = mpirun_command(2, "a,b", {}, {});
  const ChildCommand here = mpirun_command(2, "", {}, {});
  unsetenv("LOCKSTEP_INTERFACE");
  // Of Open MPI 4 and of 5.
  for (const char* name : {"OMPI_MCA_oob_tcp_if_include", "PRTE_MCA_prte_if_include"}) {
    EXPECT_EQ(hosts.environment.at(name), "10.0.0.0/24");
    EXPECT_FALSE(here.environment.contains(name));
  }
  EXPECT_THAT(hosts.arguments, Contains("LOCKSTEP_INTERFACE"));
}

TEST(MpirunCommand, LeavesTheNumberOfThreadsToEachOfSeveralHosts) {
  unsetenv("OMP_NUM_THREADS");
  EXPECT_THAT(mpirun_command(2, "a,b", {}, {}).arguments, Not(Contains("OMP_NUM_THREADS")));
  setenv("OMP_NUM_THREADS", "7", 1);
  const ChildCommand command = mpirun_command(2, "a,b", {}, {});
  EXPECT_THAT(command.arguments, Contains("OMP_NUM_THREADS"));
  EXPECT_EQ(command.environment.at("OMP_NUM_THREADS"), "7");
}

TEST(MpirunCommand, SharesTheCoresBetweenTheRanks) {
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(mpirun_command(1 << 16, "", {}, {}).environment.at("OMP_NUM_THREADS"), "1");
}

TEST(MpirunMessages, PassWhatRanksPrintAndKeepBackRemarks) {
  MpirunMessages messages;
  const std::string remark = "A requested component was not found, or was unable\nto be opened.\n";
  EXPECT_EQ(messages.feed("rank 0 speaks\n" + kDashes + "\n" + remark + kDashes + "\nrank 1 speaks\n"),
            "rank 0 speaks\nrank 1 speaks\n");
  EXPECT_EQ(messages.remarks(), remark);
}

TEST(MpirunMessages, MayBreakAnywhere) {
  const std::string text = "one\n" + kDashes + "\nremark\n" + kDashes + "\n--- two\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    MpirunMessages messages;
    std::string passed = messages.feed(text.substr(0, cut));
    passed += messages.feed(text.substr(cut));
    passed += messages.finish();
    ASSERT_EQ(passed, "one\n--- two\n") << cut;
    ASSERT_EQ(messages.remarks(), "remark\n") << cut;
  }
}

TEST(MpirunMessages, TellWhichSignalEndedWhichRank) {
  MpirunMessages messages;
  messages.feed(kDashes + "\nfirst\n" + kDashes + kDashes +
                "\nmpirun noticed that process rank 1 with PID 0 on node host exited on signal 9 (Killed).\n" +
                kDashes + "\n");
  EXPECT_THAT(messages.signals(), ElementsAre(std::pair(1, 9)));
  EXPECT_THAT(messages.remarks(), HasSubstr("first"));
}

TEST(MpirunMessages, TellASignalInTheWordsOfVersion5) {
  MpirunMessages messages;
  messages.feed(kDashes + "\nprterun noticed that process rank 2 with PID 41 on node host exited on\nsignal 11 " +
                "(Segmentation fault).\n" + kDashes + "\n");
  EXPECT_THAT(messages.signals(), ElementsAre(std::pair(2, 11)));
}

TEST(MpirunMessages, LeaveOutChatter) {
  MpirunMessages messages;
  EXPECT_EQ(messages.feed("mpirun: Forwarding signal 10 to job\n"
                          "[host:12] 1 more process has sent help message help-mpi-api.txt / mpi-abort\n"
                          "[host:12] [[1,0],0] ORTE_ERROR_LOG: Data unpack had inadequate space in file x at line 5\n"
                          "PRTE: Forwarding signal 10 to job\n"
                          "[host:12] PMIX ERROR: UNREACHABLE in file x.c at line 7\n"
                          "[host:12] *** Process received signal ***\n"),
            "[host:12] *** Process received signal ***\n");
}

TEST(MpirunMessages, LeaveOutARemarkThatSaysNothing) {
  MpirunMessages messages;
  messages.feed(kDashes + "\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code.\n" +
                kDashes + kDashes + "\nfirst\n" + kDashes + "\n");
  EXPECT_EQ(messages.remarks(), "first\n");
}

constexpr std::size_t kLongestLine = std::size_t{64} << 10;

TEST(MpirunMessages, AreNotKeptForTheEndOfALineThatDoesNotCome) {
  MpirunMessages messages;
  EXPECT_EQ(messages.feed(std::string(kLongestLine - 1, 'x')), "");
  EXPECT_EQ(messages.feed("yz"), std::string(kLongestLine - 1, 'x') + "y");
  EXPECT_EQ(messages.feed(kDashes.substr(1) + "\n"), "z" + kDashes.substr(1) + "\n");
  EXPECT_EQ(messages.feed("next\n"), "next\n");
}

TEST(MpirunMessages, HoldBackWhatSshSaysOfAHostUntilARankHasStarted) {
  MpirunMessages messages;
  const std::string unknown = "ssh: Could not resolve hostname b: Name or service not known\n";
  EXPECT_EQ(messages.feed(unknown + "a banner\n"), "a banner\n");
  EXPECT_EQ(messages.held(), unknown);
  EXPECT_EQ(messages.release(), unknown);
  EXPECT_EQ(messages.release(), "");
  EXPECT_EQ(messages.feed(unknown), unknown);
}

// A line of dashes that a rank prints begins no remark of mpirun's, whose remarks are short.
TEST(MpirunMessages, AreNotKeptForTheEndOfARemarkThatDoesNotCome) {
  MpirunMessages messages;
  messages.feed(kDashes + "\n");
  std::string printed, passed;
  for (int line = 0; line < 20'000; ++line) {
    const std::string text = "line " + std::to_string(line) + "\n";
    printed += text;
    passed += messages.feed(text);
  }
  EXPECT_GT(passed.size(), printed.size() - kLongestLine);
  EXPECT_EQ(passed + messages.finish(), printed);
  EXPECT_EQ(messages.remarks(), "");
}

TEST(MpirunMessages, ThatAreNoTextAreEscaped) {
  MpirunMessages messages;
  EXPECT_EQ(messages.feed("\xb0U\n\x1b[31mred\n"), "\\xb0U\n\x1b[31mred\n");
}

TEST(MpirunMessages, WithoutAnEndAreNotLost) {
  MpirunMessages messages;
  EXPECT_EQ(messages.feed(kDashes + "\nunclosed\nlast"), "");
  EXPECT_EQ(messages.finish(), "unclosed\nlast\n");
}

}  // namespace
}  // namespace lockstep::launcher
