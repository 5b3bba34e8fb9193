// SPDX-License-Identifier: Apache-2.0
#include "launcher/hosts/hosts_examination.h"

#include <gmock/gmock.h>

#include <cmath>

#include "launcher/hosts/host_list.h"
#include "runtime/base/host_name.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;

/// An examination by the command, where `ssh` is this script. Hosts are called h1, h2 ...
class HostsExamination : public testing::Test {
 protected:
  Ended run(const std::vector<std::string>& arguments, const std::string& ssh) const {
    write_text(folder_ / "ssh", "#!/bin/sh\nfor last; do host=$before; before=$last; done\n" + ssh + "\n");
    std::filesystem::permissions(folder_ / "ssh", std::filesystem::perms::owner_all);
    std::vector<std::string> words{"doctor", "--hosts"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return lockstep_command(std::move(words), folder_, {{"PATH", folder_.path().string() + ":/usr/bin:/bin"}});
  }
  Json examined(const std::string& hosts, const std::string& ssh) const {
    const Ended ended = run({hosts, "--json"}, ssh);
    EXPECT_EQ(ended.code, 3) << ended.err;
    return Json::parse(ended.out);
  }
  static std::vector<std::string> missing(const Json& found) {
    std::vector<std::string> texts;
    for (const Json& finding : found["findings"]) texts.push_back(finding["missing"].get<std::string>());
    return texts;
  }

  Folder folder_;
};

TEST_F(HostsExamination, NamesAHostThatIsNotReachedAndGoesOn) {
  const Json found = examined("h1," + host_name() + ":4", "echo 'connect to host h1 port 22: No route' >&2; exit 255");
  EXPECT_THAT(missing(found), testing::Contains("ssh to h1 without a password: connect to host h1 port 22: No route"));
  EXPECT_EQ(found["hosts"][0]["answers"], false);
  EXPECT_EQ(found["hosts"][1]["answers"], true);
  EXPECT_EQ(found["hosts"][1]["host"], host_name());
}

TEST_F(HostsExamination, NamesTheProgramAndTheFolderThatAHostLacks) {
  const Json no_program = examined("h1", "exec sh -c 'exit 98'");
  ASSERT_EQ(missing(no_program).size(), 1U);
  EXPECT_THAT(missing(no_program)[0], HasSubstr(" on h1"));
  const Json no_folder = examined("h1", "exec sh -c \"$(echo \"$last\" | sed 's/--answer /--answer \\/nowhere/')\"");
  EXPECT_THAT(missing(no_folder), testing::Contains(folder_.path().string() + " on h1"));
}

TEST_F(HostsExamination, NamesAnotherVersionAndAnotherTime) {
  const std::string there = R"(echo '{"lockstep": "0.0.1", "mpi": "", "mpi_daemon": true, "folder": true, "host": "h1",
"interfaces": [], "port": 1, "id": 1}' | tr -d '\n'; echo; while read line; do echo '{"us": 1000000, "reasons": []}'; done)";
  const Json found = examined("h1", there);
  ASSERT_GE(missing(found).size(), 2U);
  EXPECT_THAT(missing(found)[0], HasSubstr("the same version on h1: it has 0.0.1"));
  EXPECT_THAT(missing(found).back(), testing::ContainsRegex("the same time on h1: its clock is [0-9.]+ s behind"));
}

TEST_F(HostsExamination, TriesTheWayBetweenTwoHostsThatAnswer) {
  // Both are this machine, so that each of their addresses is the other's as well.
  const Json found = examined("h1,h2", "exec sh -c \"$last\"");
  ASSERT_EQ(found["ways"].size(), 2U) << found;
  EXPECT_EQ(found["ways"][0]["from"], "h1");
  EXPECT_EQ(found["ways"][0]["connects"], false);
  EXPECT_LT(std::abs(found["hosts"][0]["clock_ms"].get<double>()), 1000);
  EXPECT_GT(found["hosts"][0]["clock_error_ms"].get<double>(), 0);
}

TEST_F(HostsExamination, SpeaksToAPersonToo) {
  const Ended ended = run({"h1"}, "echo 'Permission denied (publickey).' >&2; exit 255");
  EXPECT_EQ(ended.code, 3);
  EXPECT_THAT(ended.out, HasSubstr("h1              does not answer\n"));
  EXPECT_THAT(ended.out, HasSubstr("missing: ssh to h1 without a password: Permission denied (publickey).\n"));
  EXPECT_THAT(ended.out, HasSubstr("ssh-copy-id h1"));
}

TEST_F(HostsExamination, HostsThatAreNoneAndAnInterfaceWithoutHostsAreRefused) {
  EXPECT_EQ(run({"a:x"}, "exit 1").code, 2);
  EXPECT_EQ(lockstep_command({"doctor", "--interface", "lo"}, folder_).code, 2);
}

TEST(HostNames, AreEachOnceInTheirOrder) {
  EXPECT_THAT(host_names("b:2,a,b,c:4"), ElementsAre("b", "a", "c"));
  EXPECT_TRUE(is_this_host(host_name()));
  EXPECT_TRUE(is_this_host("localhost"));
  EXPECT_FALSE(is_this_host("elsewhere"));
}

}  // namespace
}  // namespace lockstep::launcher
