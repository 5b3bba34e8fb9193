// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/host_calls.h"

#include <gmock/gmock.h>

#include <thread>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// A program in place of ssh. The host is its last argument.
class HostCalls : public testing::Test {
 protected:
  std::filesystem::path ssh(const std::string& script) const {
    write_text(folder_ / "ssh",
               "#!/bin/sh\nfor host; do :; done\ncd " + folder_.path().string() + "\necho $host >> calls\n" + script);
    std::filesystem::permissions(folder_ / "ssh", std::filesystem::perms::owner_all);
    return folder_ / "ssh";
  }
  static bool pass(std::chrono::milliseconds time) {
    std::this_thread::sleep_for(time);
    return true;
  }

  Folder folder_;
  HostPatience patience_{.all = 10min, .answer = 60s, .pause = 10ms};
};

TEST_F(HostCalls, GoOnUntilEachHostHasAnswered) {
  const auto found = call_hosts(ssh("test $host = a -o $(grep -c b calls) -gt 2 || exit 255\necho\nexec sleep 1000\n"),
                                {"a", "b"}, pass, patience_);
  EXPECT_THAT(found, IsEmpty());
  // Who has answered is asked no more.
  EXPECT_EQ(count(read_text(folder_ / "calls"), "a\n"), 1u);
  EXPECT_EQ(count(read_text(folder_ / "calls"), "b\n"), 3u);
}

TEST_F(HostCalls, NameTheHostsThatHaveNotAnsweredInTime) {
  patience_.all = 0ms;
  EXPECT_THAT(call_hosts(ssh("test $host = b || exit 255\necho\nexec sleep 1000\n"), {"a", "b", "c"}, pass, patience_),
              UnorderedElementsAre("a", "c"));
}

TEST_F(HostCalls, EndWhereTheyAreToldTo) {
  EXPECT_THAT(call_hosts(
                  ssh("exec sleep 1000\n"), {"a"}, [](std::chrono::milliseconds) { return false; }, patience_),
              IsEmpty());
}

}  // namespace
}  // namespace lockstep::launcher
