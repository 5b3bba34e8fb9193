// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/metrics_follower.h"

#include "runtime/train/history/watched_run.h"
#include "tests/runtime/train/history/history_fixture.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

class MetricsFollowerTest : public History {
 protected:
  std::vector<int> poll() {
    std::vector<int> steps;
    for (const auto& line : follower_.poll()) steps.push_back(line["step"]);
    return steps;
  }

  const fs::path file_ = folder_ / "metrics.jsonl";
  MetricsFollower follower_{file_};
};

using Steps = std::vector<int>;

TEST_F(MetricsFollowerTest, GivesEachLineOnceItIsWhole) {
  EXPECT_EQ(poll(), Steps{});
  append(file_, step(1, 1.0) + step(2, 1.0).substr(0, 20));
  EXPECT_EQ(poll(), Steps{1});
  append(file_, step(2, 1.0).substr(20) + step(3, 1.0));
  EXPECT_EQ(poll(), (Steps{2, 3}));
  EXPECT_EQ(poll(), Steps{});
}

TEST_F(MetricsFollowerTest, GoesOnInAFileThatAResumePutsInItsPlace) {
  append(file_, step(1, 1.0) + step(2, 1.0) + step(3, 1.0));
  EXPECT_EQ(poll(), (Steps{1, 2, 3}));
  // Step 3 is trained again, later.
  write(folder_ / "new", step(1, 1.0) + step(2, 1.0) + step(3, 1.0, 5000.0));
  fs::rename(folder_ / "new", file_);
  EXPECT_EQ(poll(), Steps{3});
  append(file_, step(4, 1.0, 5000.0));
  EXPECT_EQ(poll(), Steps{4});
}

TEST_F(MetricsFollowerTest, OfALongFileBeginsWithItsEnd) {
  std::string text;
  int last = 0;
  while (text.size() < (std::size_t{2} << 20)) text += step(++last, 1.0);
  write(file_, text);
  const Steps steps = poll();
  EXPECT_EQ(steps.back(), last);
  EXPECT_GT(steps.front(), 1);
}

class WatchedRunTest : public History {
 protected:
  void add(const std::string& text) { run_.add(nlohmann::ordered_json::parse(text)); }
  WatchedRun run_;
};

TEST_F(WatchedRunTest, KnowsTheTimeLeftByThePaceOfItsLines) {
  run_.set_steps(100);
  EXPECT_FALSE(run_.has_step());
  for (int i = 1; i <= 11; ++i) add(step(i, 1.0));
  const ProgressState progress = run_.progress();
  EXPECT_EQ(progress.step, 11);
  EXPECT_EQ(progress.steps, 100);
  EXPECT_EQ(progress.elapsed, std::chrono::seconds(10));
  ASSERT_TRUE(progress.left);
  EXPECT_EQ(*progress.left, std::chrono::seconds(89)) << "a step a second";
}

TEST_F(WatchedRunTest, DoesNotCountTheTimeInWhichItStood) {
  run_.set_steps(100);
  add(step(1, 1.0));
  add(step(2, 1.0));
  add(event("resumed", 2));
  add(step(3, 1.0, 90'000.0));
  add(step(4, 1.0, 90'000.0));
  EXPECT_EQ(*run_.progress().left, std::chrono::seconds(96));
}

TEST_F(WatchedRunTest, HasEndedUntilItGoesOn) {
  add(step(1, 1.0));
  EXPECT_TRUE(run_.end().is_null());
  add(event("preempted", 1, ",\"exit_code\":75"));
  EXPECT_EQ(run_.end()["exit_code"], 75);
  add(event("resumed", 1));
  EXPECT_FALSE(run_.end().is_null());
  add(step(2, 1.0));
  EXPECT_TRUE(run_.end().is_null());
}

}  // namespace
}  // namespace lockstep::train
