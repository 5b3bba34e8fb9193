// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/event_command.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <fstream>
#include <mutex>
#include <sstream>
#include <vector>

#include "runtime/base/descriptor.h"
#include "tests/support/folder.h"

namespace lockstep::train {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr milliseconds kLongEnough{60'000};

class EventCommandTest : public testing::Test {
 protected:
  auto listener() {
    return [this](const std::string& trouble) {
      const std::lock_guard lock(mutex_);
      troubles_.push_back(trouble);
    };
  }
  std::vector<std::string> troubles() {
    const std::lock_guard lock(mutex_);
    return troubles_;
  }
  void wait_for_trouble() {
    while (troubles().empty()) std::this_thread::sleep_for(milliseconds(1));
  }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }

  Folder folder_;
  std::mutex mutex_;
  std::vector<std::string> troubles_;
};

TEST_F(EventCommandTest, GetsEachLineAndTheEnd) {
  EventCommand command("cat > " + (folder_ / "lines").string() + "; echo end >> " + (folder_ / "lines").string(),
                       listener());
  std::string expected;
  for (int i = 0; i < 10'000; ++i) {
    command.write(std::to_string(i) + "\n");
    expected += std::to_string(i) + "\n";
  }
  command.finish(kLongEnough);
  EXPECT_EQ(read("lines"), expected + "end\n");
  EXPECT_THAT(troubles(), IsEmpty());
}

TEST_F(EventCommandTest, ThatDiesIsSaidOnce) {
  EventCommand command("exit 3", listener());
  while (troubles().empty()) {
    command.write("line\n");
    std::this_thread::sleep_for(milliseconds(1));
  }
  for (int i = 0; i < 10; ++i) command.write("line\n");
  command.finish(kLongEnough);
  EXPECT_THAT(troubles(), ElementsAre(HasSubstr("ended with exit code 3; training goes on")));
}

TEST_F(EventCommandTest, ThatFailsAtItsEndIsSaid) {
  EventCommand command("cat > /dev/null; exit 4", listener());
  command.write("line\n");
  command.finish(kLongEnough);
  EXPECT_THAT(troubles(), ElementsAre(HasSubstr("ended with exit code 4")));
}

TEST_F(EventCommandTest, ThatDoesNotReadIsNotWaitedForAndDropsAreCounted) {
  // It ends with the test, whose folder goes.
  EventCommand command("while test -d " + folder_.path().string() + "; do sleep 0.05; done", listener(), 1000);
  const std::string line(100, 'x');
  for (int i = 0; i < 10'000; ++i) command.write(line + "\n");
  wait_for_trouble();
  EXPECT_THAT(troubles(), ElementsAre(HasSubstr("lines are dropped from here on")));
  command.finish(milliseconds(1));
  EXPECT_THAT(troubles()[1], testing::MatchesRegex(".*has not got [0-9]+ lines"));
  EXPECT_THAT(troubles()[2], HasSubstr("left to itself"));
}

TEST_F(EventCommandTest, DoesNotHoldOtherFiles) {
  const Descriptor inherited(open("/dev/null", O_RDONLY));
  ASSERT_TRUE(inherited);
  EventCommand command("cat > /dev/null; ls /proc/self/fd | wc -l > " + (folder_ / "count").string(), listener());
  command.finish(kLongEnough);
  EXPECT_LE(std::stoi(read("count")), 4) << "its three streams, and the folder that ls reads";
}

}  // namespace
}  // namespace lockstep::train
