// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/halving.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "runtime/base/error.h"
#include "tests/support/folder.h"

namespace lockstep::launcher {
namespace {

namespace fs = std::filesystem;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using testing::ThrowsMessage;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::vector<std::size_t> best(const std::vector<double>& values, const std::string& metric, std::uint64_t factor = 2) {
  return going_on(values, {.metric = metric, .factor = factor});
}

TEST(Halving, RungsGrowByTheFactorAndLieBeforeTheEnd) {
  EXPECT_THAT(rungs_of({.first_steps = 10}, 80), ElementsAre(10, 20, 40));
  EXPECT_THAT(rungs_of({.first_steps = 10, .factor = 3}, 91), ElementsAre(10, 30, 90));
  EXPECT_THAT(rungs_of({.first_steps = 10}, 10), IsEmpty());
  EXPECT_THAT(rungs_of({.first_steps = 3'000'000'000, .factor = 1000}, 4'000'000'000), ElementsAre(3'000'000'000));
}

TEST(Halving, TheBestShareGoesOnTheBestOneFirst) {
  EXPECT_THAT(best({0.1, 0.4, 0.2, 0.3}, "eval.accuracy"), ElementsAre(1, 3));
  EXPECT_THAT(best({0.1, 0.4, 0.2, 0.3}, "eval.loss"), ElementsAre(0, 2));
  EXPECT_THAT(best({0.1, 0.4, 0.2, 0.3, 0.5}, "eval.accuracy"), ElementsAre(4, 1, 3)) << "half of five is three";
  EXPECT_THAT(best({0.1, 0.4, 0.2, 0.3, 0.5}, "eval.accuracy", 5), ElementsAre(4));
}

TEST(Halving, OfEqualValuesTheFirstGoesOn) {
  EXPECT_THAT(best({0.1, 0.3, 0.3, 0.3}, "eval.accuracy"), ElementsAre(1, 2));
  EXPECT_THAT(best({0.3, 0.1, 0.1, 0.1}, "eval.loss"), ElementsAre(1, 2));
}

TEST(Halving, ARunWithoutAValueNeverGoesOn) {
  EXPECT_THAT(best({kNone, 0.1, kNone, kNone}, "eval.loss"), ElementsAre(1));
  EXPECT_THAT(best({kNone, kNone}, "eval.accuracy"), IsEmpty());
}

class ValueAtRung : public testing::Test {
 protected:
  std::optional<double> value(const std::string& metrics, std::uint64_t rung = 20) {
    const fs::path run = folder_ / "run";
    fs::create_directories(run);
    std::ofstream(run / "metrics.jsonl") << metrics;
    return value_at(run, "eval.accuracy", rung);
  }
  static std::string line(const std::string& fields) { return "{" + fields + ",\"time\":1000}\n"; }
  static std::string step(int step) { return line("\"step\": " + std::to_string(step) + ", \"loss\": 1"); }
  static std::string eval(int step, const std::string& accuracy) {
    return line("\"event\":\"eval\",\"step\":" + std::to_string(step) + ", \"loss\": 1, \"accuracy\": " + accuracy);
  }
  static std::string end(const std::string& event, int step, int code) {
    return line("\"event\":\"" + event + "\",\"step\":" + std::to_string(step) +
                ", \"exit_code\": " + std::to_string(code));
  }

  Folder folder_;
};

TEST_F(ValueAtRung, IsItsEvaluationThere) {
  const std::string there = step(10) + eval(10, "0.5") + step(20) + eval(20, "0.7");
  EXPECT_THAT(value(there), Optional(DoubleEq(0.7)));
  EXPECT_THAT(value(there + end("preempted", 20, 75) + step(30) + eval(30, "0.9")), Optional(DoubleEq(0.7)));
  EXPECT_THAT(value(there + step(25) + end("failed", 25, 5)), Optional(DoubleEq(0.7))) << "it went wrong later";
}

TEST_F(ValueAtRung, IsOpenWhileTheRunHasNotComeThere) {
  EXPECT_EQ(value_at(folder_ / "none", "eval.accuracy", 20), std::nullopt);
  EXPECT_EQ(value(""), std::nullopt);
  EXPECT_EQ(value(step(10) + eval(10, "0.5") + end("preempted", 10, 75)), std::nullopt);
  EXPECT_EQ(value(step(20) + end("preempted", 20, 75)), std::nullopt) << "the evaluation was cut off";
  EXPECT_EQ(value(step(15) + end("failed", 15, 4)), std::nullopt) << "a full disk says nothing of the settings";
}

TEST_F(ValueAtRung, IsTheLastOneBeforeOfARunThatEndedOrWentPast) {
  EXPECT_THAT(value(step(15) + eval(15, "0.5") + end("done", 15, 0)), Optional(DoubleEq(0.5)));
  EXPECT_THAT(value(step(15) + eval(15, "0.5") + step(21)), Optional(DoubleEq(0.5)));
  EXPECT_THAT(value(step(21) + end("done", 21, 0)), Optional(testing::IsNan()));
}

TEST_F(ValueAtRung, IsNoneWhereNumbersWentWrong) {
  EXPECT_THAT(value(step(10) + eval(10, "0.5") + step(15) + end("failed", 15, 5)), Optional(testing::IsNan()));
  EXPECT_THAT(value(step(20) + eval(20, "null")), Optional(testing::IsNan()));
}

/// Jobs of learned digits.
class RequireRungs : public testing::Test {
 protected:
  static job::Job job(const std::string& setting = "train.eval_every=10") {
    const std::vector<std::string> settings{"train.steps=50", setting};
    return job::load_checked(LOCKSTEP_SOURCE_DIR "/configs/digits_convnet.pbtxt", settings).job;
  }
  static auto refuses(const Halving& halving, std::size_t runs, const job::Job& job, const std::string& why) {
    const std::vector<job::Job> jobs(runs, job);
    EXPECT_THAT([&] { require_rungs(halving, jobs); }, ThrowsMessage<UsageError>(HasSubstr(why)));
  }
};

TEST_F(RequireRungs, LieBelowTheStepsOfTheShortestRun) {
  const Halving halving{.metric = "eval.accuracy", .first_steps = 10};
  EXPECT_THAT(require_rungs(halving, std::vector(8, job())), ElementsAre(10, 20, 40));
  std::vector<job::Job> jobs(3, job());
  jobs[1].mutable_train()->set_steps(30);
  EXPECT_THAT(require_rungs(halving, jobs), ElementsAre(10, 20));
  EXPECT_THAT(require_rungs({}, jobs), IsEmpty());
}

TEST_F(RequireRungs, ThatCannotBeAreRefused) {
  refuses({.metric = "eval.dice", .first_steps = 10}, 8, job(), "there are eval.loss, eval.accuracy");
  job::Job blind = job("train.eval_every=0");
  blind.mutable_data()->clear_eval();
  refuses({.metric = "eval.loss", .first_steps = 10}, 8, blind, "the job names no evaluation data");
  refuses({.metric = "eval.loss", .first_steps = 15}, 8, job(), "a multiple of train.eval_every, which is 10");
  refuses({.metric = "eval.loss", .first_steps = 10}, 8, job("train.eval_every=0"), "which is 0: the job evaluates at");
  refuses({.metric = "eval.loss", .first_steps = 50}, 8, job(), "fewer than the 50 steps of a run");
  refuses({.metric = "eval.loss", .first_steps = 10}, 4, job(), "of 4 runs 1 comes to the rung at step 40");
  refuses({.metric = "eval.loss", .first_steps = 10}, 1, job(), "of 1 run 1 comes to the rung at step 10");
}

}  // namespace
}  // namespace lockstep::launcher
