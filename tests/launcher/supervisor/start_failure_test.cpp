// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/start_failure.h"

#include <gmock/gmock.h>

namespace lockstep::launcher {
namespace {

constexpr const char* kNoDaemon =
    "ORTE was unable to reliably start one or more daemons.\nThis usually is caused by:\n\n"
    "* not finding the required libraries and/or binaries on\n  one or more nodes.\n";
constexpr const char* kNoDaemon5 =
    "PRTE was unable to reliably start one or more daemons.\nThis usually is caused by:\n\n"
    "* the inability to resolve specified hostnames - please check\n  above for any output regarding this "
    "possibility\n";

/// The cause, or "none".
std::string what_of(std::string_view remarks, std::string_view lines = {}) {
  const auto failure = start_failure(remarks, lines);
  return failure ? failure->what : "none";
}

TEST(StartFailure, IsWhatSshSays) {
  for (const char* remark : {kNoDaemon, kNoDaemon5}) {
    EXPECT_EQ(what_of(remark, "ssh: Could not resolve hostname nosuch: Name or service not known\r\n"),
              "host nosuch is unknown: its name has no address");
    EXPECT_EQ(what_of(remark, "ssh: connect to host b port 22: Connection refused\r\n"),
              "host b takes no ssh connection: Connection refused");
    EXPECT_EQ(what_of(remark, "root@b: Permission denied (publickey,password).\n"),
              "ssh to root@b needs a password or a key: permission denied (publickey,password)");
  }
  EXPECT_EQ(what_of(kNoDaemon,
                    "No ED25519 host key is known for b and you have requested strict checking.\n"
                    "Host key verification failed.\n"),
            "ssh does not know the key of host b");
  EXPECT_EQ(what_of(kNoDaemon, "Host key verification failed.\n"), "ssh does not trust the key of one of the hosts");
  EXPECT_EQ(what_of(kNoDaemon,
                    "kex_exchange_identification: read: Connection reset by peer\n"
                    "Connection reset by 10.0.0.2 port 22\n"),
            "10.0.0.2 has closed ssh's connection");
}

TEST(StartFailure, IsADaemonThatIsNotThere) {
  for (const char* line : {"bash: line 1: orted: command not found\n", "bash: orted: command not found\n",
                           "sh: 1: orted: not found\n", "zsh:1: command not found: orted\n"}) {
    EXPECT_EQ(what_of(kNoDaemon, line), "one of the hosts cannot run orted, Open MPI's daemon") << line;
  }
  EXPECT_EQ(what_of(kNoDaemon5, "bash: line 1: /opt/bin/prted: No such file or directory\n"),
            "one of the hosts cannot run /opt/bin/prted, Open MPI's daemon");
  EXPECT_EQ(what_of(kNoDaemon, "orted: error while loading shared libraries: libopen-rte.so.40: cannot open\n"),
            "orted, Open MPI's daemon, lacks libopen-rte.so.40 on one of the hosts");
  EXPECT_EQ(what_of(kNoDaemon), "its daemon did not start on one of the hosts");
}

TEST(StartFailure, IsAProgramOrFolderThatAHostLacks) {
  EXPECT_EQ(what_of("mpirun was unable to launch the specified application as it could not access\n"
                    "or execute an executable:\n\nExecutable: /opt/my lockstep\nNode: b\n\n"
                    "while attempting to start process rank 1.\n"),
            "host b has no program /opt/my lockstep that it may run");
  EXPECT_EQ(what_of("prterun was unable to launch the specified application as it lacked\n"
                    "permissions to execute an executable:\n\n   Executable: /opt/lockstep\n   Node: b\n\n"
                    "while attempting to start process rank 1.\n"),
            "host b has no program /opt/lockstep that it may run");
  for (const char* program : {"mpirun", "prterun"}) {
    EXPECT_EQ(what_of(std::string(program) +
                      " was unable to find the specified executable file, and therefore\n"
                      "did not launch the job.  This error was first reported for process\nrank 1; it may have "
                      "occurred for other processes as well.\n\nNOTE: A common cause for this error is misspelling a "
                      "mpirun command\n      line parameter option.\n\nNode:       b\nExecutable: /opt/lockstep\n"),
              "host b has no program /opt/lockstep that it may run");
  }
  EXPECT_EQ(what_of("mpirun was unable to launch the specified application as it could not\n"
                    "change to the specified working directory:\n\nWorking directory: /data\nNode: b\n\n"
                    "while attempting to start process rank 1.\n"),
            "host b has no folder /data that ranks may start in");
  EXPECT_EQ(what_of("mpirun was unable to start the specified application as it encountered an\nerror:\n\n"
                    "Error code: -1\nError name: Not available\nNode: b\n\nwhen attempting to start process rank 1.\n"),
            "host b could not start a rank: Not available");
}

// A rank may print of an ssh of its own.
TEST(StartFailure, IsNoneWhereMpirunTellsOfNone) {
  EXPECT_EQ(what_of("", "ssh: connect to host b port 22: Connection refused\n"), "none");
  EXPECT_EQ(what_of("A requested component was not found\n", "Host key verification failed.\n"), "none");
}

TEST(StartFailure, HasLinesOfItsOwn) {
  EXPECT_TRUE(is_of_a_daemons_start("ssh: connect to host b port 22: No route to host\r"));
  EXPECT_TRUE(is_of_a_daemons_start("bash: line 1: orted: command not found"));
  for (const char* line : {"", "step 3: ssh: connect to host b", "the orted: not found of old", "Permission denied",
                           "cp: cannot open x: Permission denied"}) {
    EXPECT_FALSE(is_of_a_daemons_start(line)) << line;
  }
}

TEST(StartFailure, HasACountOfItsOwn) {
  EXPECT_TRUE(is_count_of_failed_starts("2 total processes failed to start\n"));
  EXPECT_FALSE(is_count_of_failed_starts("step 2 total processes failed to start\n"));
}

TEST(StartFailure, SaysWhatToDo) {
  EXPECT_EQ(start_failure(kNoDaemon, "a@b: Permission denied (publickey).\n")->advice,
            "Let this user in there with a key: ssh-copy-id a@b");
}

}  // namespace
}  // namespace lockstep::launcher
