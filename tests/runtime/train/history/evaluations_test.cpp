// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/evaluations.h"

#include <gmock/gmock.h>

#include "tests/runtime/train/history/history_fixture.h"

namespace lockstep::train {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsNan;
using testing::Pair;

using EvaluationsTest = History;

TEST_F(EvaluationsTest, AreThoseOfAMetricByStep) {
  write(folder_ / "run/metrics.jsonl", step(1, 1.0) + eval(1, 0.25) + step(2, 0.9) + event("resumed", 2) +
                                           eval(2, 0.5) + "{\"event\":\"eval\",\"step\":3,\"loss\":null}\n");
  EXPECT_THAT(evaluations_of(folder_ / "run", "eval.accuracy"),
              ElementsAre(Pair(1, 0.25), Pair(2, 0.5), Pair(3, IsNan())));
  EXPECT_THAT(evaluations_of(folder_ / "run", "eval.loss"), ElementsAre(Pair(1, 0.5), Pair(2, 0.5), Pair(3, IsNan())));
}

TEST_F(EvaluationsTest, OfTwoBehindAStepTheLaterOneCounts) {
  write(folder_ / "run/metrics.jsonl", eval(1, 0.25) + eval(1, 0.75));
  EXPECT_THAT(evaluations_of(folder_ / "run", "eval.accuracy"), ElementsAre(Pair(1, 0.75)));
}

TEST_F(EvaluationsTest, WithoutARecordOrFromDamagedLinesThereAreNone) {
  EXPECT_THAT(evaluations_of(folder_ / "run", "eval.accuracy"), IsEmpty());
  write(folder_ / "run/metrics.jsonl",
        "\"eval\"\n{\"event\":\"eval\",\"step\":-1,\"accuracy\":1}\n{\"event\":\"eval\",");
  EXPECT_THAT(evaluations_of(folder_ / "run", "eval.accuracy"), IsEmpty());
}

}  // namespace
}  // namespace lockstep::train
