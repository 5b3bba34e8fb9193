// SPDX-License-Identifier: Apache-2.0
#include "launcher/hosts/conversation.h"

#include <gmock/gmock.h>

#include "runtime/base/error.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;
using Json = Conversation::Json;

Conversation::Clock::time_point soon() { return Conversation::Clock::now() + 60s; }

/// What `sh` does with this script.
std::vector<std::string> script(const std::string& text) { return {"sh", "-c", text}; }

TEST(Conversation, PassesByWhatIsNoObject) {
  Conversation talk(script("echo hello; echo 7; echo '{\"a\": 1}'; while read line; do echo \"$line\"; done"));
  EXPECT_EQ(talk.hear(soon()), Json({{"a", 1}}));
  EXPECT_EQ(talk.ask({{"b", "two"}}, soon()), Json({{"b", "two"}}));
}

TEST(Conversation, WithAProcessThatEndsTellsHow) {
  Conversation talk(script("echo first >&2; echo second >&2; exit 98"));
  EXPECT_EQ(talk.hear(soon()), std::nullopt);
  EXPECT_EQ(talk.exit_code(soon()), 98);
  EXPECT_EQ(talk.complaint(), "first second");
  talk.say({{"nobody", "listens"}});
}

TEST(Conversation, WaitsNoLongerThanItIsTold) {
  Conversation talk(script("exec sleep 1000"));
  EXPECT_EQ(talk.hear(Conversation::Clock::now() + 10ms), std::nullopt);
  EXPECT_EQ(talk.exit_code(Conversation::Clock::now()), std::nullopt);
}

TEST(Conversation, WithAProcessThatClosesItsErrorsGoesOn) {
  Conversation talk(script("exec 2>&-; sleep 0.1; echo '{\"late\": true}'"));
  EXPECT_EQ(talk.hear(soon()), Json({{"late", true}}));
}

TEST(Conversation, WithAProgramThatIsNotThereIsAnError) {
  EXPECT_THROW(Conversation({"/nonexistent/ssh"}), EnvironmentError);
}

}  // namespace
}  // namespace lockstep::launcher
