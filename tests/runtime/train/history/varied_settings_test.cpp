// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/varied_settings.h"

#include <gmock/gmock.h>

#include "runtime/job/saved_job.h"
#include "tests/runtime/train/history/history_fixture.h"

namespace lockstep::train {
namespace {

using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

class VariedSettings : public History {
 protected:
  static RunRecord run(const std::string& text) { return {.directory = "run", .job = job::read_saved(text)}; }
};

TEST_F(VariedSettings, AreThoseInWhichRunsOfAJobDiffer) {
  const std::vector<RunRecord> runs{run(job("0.1")), run(job("0.2") + " amp { dtype: BF16 }"),
                                    run(job("0.1") + " fault { nan { step: 5 } }")};
  const std::vector<Settings> varied = varied_settings(runs, true);
  EXPECT_THAT(varied[0], UnorderedElementsAre(Pair("optimizer.sgd.lr", "0.1")));
  EXPECT_THAT(varied[1], UnorderedElementsAre(Pair("optimizer.sgd.lr", "0.2"), Pair("amp.dtype", "BF16")));
  EXPECT_THAT(varied[2], UnorderedElementsAre(Pair("optimizer.sgd.lr", "0.1")));
}

TEST_F(VariedSettings, CompareJobsOfOneNameOrAll) {
  const std::vector<RunRecord> runs{run(job("0.1", "a")), run(job("0.2", "b")), run("no job")};
  for (const Settings& settings : varied_settings(runs, true)) EXPECT_THAT(settings, IsEmpty());
  EXPECT_THAT(varied_settings(runs, false)[1], UnorderedElementsAre(Pair("optimizer.sgd.lr", "0.2")));
}

TEST_F(VariedSettings, HaveShortNamesThatNoOtherHas) {
  const auto names = short_names({{{"optimizer.sgd.lr", ""}, {"a.steps", ""}}, {{"b.steps", ""}, {"steps", ""}}});
  EXPECT_EQ(names.at("optimizer.sgd.lr"), "lr");
  EXPECT_EQ(names.at("a.steps"), "a.steps");
  EXPECT_EQ(names.at("b.steps"), "b.steps");
  EXPECT_EQ(names.at("steps"), "steps");
}

TEST_F(VariedSettings, OfAJobThatIsNoneAreNotRead) {
  EXPECT_FALSE(job::read_saved(""));
  EXPECT_FALSE(job::read_saved("model { mlp"));
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "model { ";
  EXPECT_FALSE(job::read_saved(deep));
  const auto newer = job::read_saved(job("0.1") + " of_a_later_version: 3");
  ASSERT_TRUE(newer);
  EXPECT_EQ(newer->train().steps(), 40);
}

}  // namespace
}  // namespace lockstep::train
