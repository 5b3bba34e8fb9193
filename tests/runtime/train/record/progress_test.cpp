// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/progress.h"

#include <gmock/gmock.h>

#include <string>

namespace lockstep::train {
namespace {

using testing::HasSubstr;
using testing::Not;

// The name is the job's, the path is the user's, and neither may move the cursor.
TEST(Progress, ShowsControlCharactersAsText) {
  testing::internal::CaptureStdout();
  {
    Progress progress({}, 1);
    RunFacts facts;
    facts.job = "job\033[2J";
    facts.run_dir =
        "runs/\x9b"
        "2J";
    facts.remarks = {"remark\a"};
    progress.header(facts);
    progress.saved(5, "step\r", 0.1);
    progress.note("note\033[2J");
    progress.result({}, {},
                    {"lockstep eval runs/\x9b"
                     "2J"});
  }
  const std::string text = testing::internal::GetCapturedStdout();
  for (const char* const shown : {"job\\x1b[2J", "runs/\\x9b2J", "remark\\x07", "step\\x0d", "note\\x1b[2J"}) {
    EXPECT_THAT(text, HasSubstr(shown));
  }
  for (const char* const hidden : {"\033", "\x9b", "\a", "\r"}) EXPECT_THAT(text, Not(HasSubstr(hidden)));
}

TEST(Progress, SaysOnWhichOfSeveralHostsTheRunDirectoryLies) {
  RunFacts facts;
  facts.run_dir = "/local/run";
  EXPECT_THAT(header_text(facts, false), HasSubstr("run        /local/run"));
  EXPECT_THAT(header_text(facts, false), Not(HasSubstr("host")));
  facts.host = "gpu3";
  facts.transport = "TCP";
  facts.threads = 2;
  EXPECT_THAT(header_text(facts, false), HasSubstr(" threads, through TCP between hosts\n"));
  EXPECT_THAT(header_text(facts, false), HasSubstr("run        /local/run, on host gpu3"));
}

TEST(Progress, SaysWhyAStepWasSkipped) {
  StepReport report{.step = 3, .loss_scale = 16, .next_loss_scale = 8, .skipped = true};
  const auto shown = [&report] {
    testing::internal::CaptureStdout();
    Progress({}, 100).step(report);
    return testing::internal::GetCapturedStdout();
  };
  report.parameter = "first.weight";
  EXPECT_THAT(shown(), HasSubstr("step 3 skipped: inf or NaN in the gradient of first.weight; loss scale 16, now 8"));
  report.rank = 1;
  EXPECT_THAT(shown(), HasSubstr("gradient of first.weight on rank 1;"));
  report.parameter = "";
  report.rank = -3;
  EXPECT_THAT(shown(), HasSubstr("step 3 skipped: the ranks disagree on how to step;"));
}

}  // namespace
}  // namespace lockstep::train
