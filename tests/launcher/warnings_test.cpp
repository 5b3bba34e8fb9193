// SPDX-License-Identifier: Apache-2.0
#include "launcher/warnings.h"

#include <gmock/gmock.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace lockstep::launcher {
namespace {

using testing::StrEq;

class Warnings : public testing::Test {
 protected:
  Warnings() : previous_(spdlog::default_logger()) { testing::internal::CaptureStderr(); }
  ~Warnings() override { spdlog::set_default_logger(previous_); }

 private:
  std::shared_ptr<spdlog::logger> previous_;
};

TEST_F(Warnings, NameTheProgramAndTheLevel) {
  log_to_stderr();
  spdlog::warn("{} lines", 3);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), StrEq("lockstep: warning: 3 lines\n"));
}

// As a member of a tar file from elsewhere may be named.
TEST_F(Warnings, ShowControlCharactersAsText) {
  log_to_stderr();
  spdlog::warn("sample 5 is skipped: a.tar: {}: not a PNG",
               "\033[2J\x9b"
               "31m\xc2\x9b.png");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              StrEq("lockstep: warning: sample 5 is skipped: a.tar: \\x1b[2J\\x9b31m\\xc2\\x9b.png: not a PNG\n"));
}

}  // namespace
}  // namespace lockstep::launcher
