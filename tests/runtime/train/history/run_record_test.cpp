// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/run_record.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>

#include "runtime/base/error.h"
#include "runtime/base/host_name.h"
#include "runtime/train/history/find_runs.h"
#include "tests/runtime/train/history/history_fixture.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RunRecordTest : public History {
 protected:
  RunRecord run(const std::string& metrics, const std::string& summary = "") {
    write(folder_ / "run/job.pbtxt", job("0.1"));
    write(folder_ / "run/metrics.jsonl", metrics);
    if (!summary.empty()) write(folder_ / "run/summary.json", summary);
    return read_run(folder_ / "run");
  }
  void hold(pid_t pid, const std::string& host) {
    write(folder_ / "run/.lock", "process " + std::to_string(pid) + " on " + host + " since 2026-01-01\n");
  }
  static double now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
};

TEST_F(RunRecordTest, TellsHowFarARunIsAndItsBestValue) {
  const RunRecord found = run(step(1, 1.0) + eval(1, 0.7) + step(2, 0.9) + eval(2, 0.9) + step(3, 0.8) + eval(3, 0.8) +
                              event("done", 3, ",\"exit_code\":0"));
  EXPECT_EQ(found.status, RunStatus::kDone);
  EXPECT_EQ(found.exit_code, 0);
  EXPECT_EQ(found.step, 3);
  EXPECT_EQ(found.steps, 40);
  EXPECT_EQ(found.samples_per_s, 100);
  ASSERT_TRUE(found.best);
  EXPECT_EQ(found.best->metric, "eval.accuracy");
  EXPECT_EQ(found.best->value, 0.9);
  EXPECT_EQ(found.best->step, 2);
  EXPECT_THAT(found.problems, IsEmpty());
}

TEST_F(RunRecordTest, TakesTheMetricThatTheJobNamesAndKnowsWhichWayIsBetter) {
  run(eval(1, 0.7));
  write(folder_ / "run/job.pbtxt", job("0.1") + " checkpoint { best: \"eval.loss\" }");
  write(folder_ / "run/metrics.jsonl",
        "{\"event\":\"eval\",\"step\":1,\"time\":1,\"loss\":0.5,\"accuracy\":0.1}\n"
        "{\"event\":\"eval\",\"step\":2,\"time\":2,\"loss\":0.7,\"accuracy\":0.2}\n");
  const RunRecord found = read_run(folder_ / "run");
  ASSERT_TRUE(found.best);
  EXPECT_EQ(found.best->metric, "eval.loss");
  EXPECT_EQ(found.best->step, 1);
}

TEST_F(RunRecordTest, WithoutAnEndIsLostUnlessAProcessHoldsItOrALineIsFresh) {
  EXPECT_EQ(run(step(1, 1.0)).status, RunStatus::kLost);
  hold(getpid(), host_name());
  EXPECT_EQ(read_run(folder_ / "run").status, RunStatus::kRunning);
  hold(0x7ffffff0, host_name());
  EXPECT_EQ(read_run(folder_ / "run").status, RunStatus::kLost);
  hold(getpid(), "another-host");
  EXPECT_EQ(read_run(folder_ / "run").status, RunStatus::kLost) << "its last line is of 1970";
  append(folder_ / "run/metrics.jsonl", step(2, 1.0, now() - 600));
  EXPECT_EQ(read_run(folder_ / "run").status, RunStatus::kRunning) << "an evaluation there may take minutes";
  fs::remove(folder_ / "run/.lock");
  EXPECT_EQ(read_run(folder_ / "run").status, RunStatus::kLost);
  append(folder_ / "run/metrics.jsonl", step(3, 1.0, now() - 5));
  EXPECT_EQ(read_run(folder_ / "run").status, RunStatus::kRunning);
}

TEST_F(RunRecordTest, OfANumberThatAnotherProcessHasNowIsLost) {
  run(step(1, 1.0));
  hold(getpid(), host_name());
  fs::last_write_time(folder_ / "run/.lock", fs::file_time_type::clock::now() - std::chrono::hours(24 * 365));
  EXPECT_EQ(read_run(folder_ / "run").status, RunStatus::kLost);
}

TEST_F(RunRecordTest, ThatWentOnAfterItsEndIsNotEnded) {
  const std::string ended = step(1, 1.0) + event("failed", 1, ",\"exit_code\":5");
  EXPECT_EQ(run(ended).status, RunStatus::kFailed);
  EXPECT_EQ(run(ended + event("resumed", 1)).status, RunStatus::kFailed) << "it had nothing left to do";
  EXPECT_EQ(run(ended + event("resumed", 1) + step(2, 1.0)).status, RunStatus::kLost);
}

TEST_F(RunRecordTest, EndsByItsSummaryWhereTheDiskTookNoMoreLines) {
  const std::string summary = "{\"status\":\"failed\",\"exit_code\":4,\"step\":2,\"samples_per_s\":50}";
  const RunRecord found = run(step(1, 1.0) + step(2, 1.0), summary);
  EXPECT_EQ(found.status, RunStatus::kFailed);
  EXPECT_EQ(found.exit_code, 4);
  EXPECT_EQ(found.samples_per_s, 50);
  EXPECT_EQ(run(step(1, 1.0) + step(2, 1.0) + step(3, 1.0), summary).status, RunStatus::kLost) << "of an earlier end";
}

TEST_F(RunRecordTest, NamesWhatIsDamaged) {
  run("not json\n", "{\"status\":");
  write(folder_ / "run/job.pbtxt", "model {");
  const RunRecord found = read_run(folder_ / "run");
  EXPECT_THAT(found.problems, ElementsAre("job.pbtxt is not the text of a job", "summary.json is no JSON"));
  EXPECT_EQ(found.step, 0);
  fs::remove(folder_ / "run/metrics.jsonl");
  fs::remove(folder_ / "run/job.pbtxt");
  EXPECT_THAT(read_run(folder_ / "run").problems,
              ElementsAre("there is no job.pbtxt", HasSubstr("summary"), "there is no metrics.jsonl"));
}

TEST_F(RunRecordTest, OfALongFileSaysThatAnEarlierValueMayBeBetter) {
  std::string text = eval(1, 0.99);
  for (int i = 1; text.size() < (std::size_t{8} << 20) + 1000; ++i) text += step(i, 1.0);
  const RunRecord found = run(text + eval(9, 0.5));
  ASSERT_TRUE(found.best);
  EXPECT_EQ(found.best->value, 0.5);
  EXPECT_FALSE(found.best_of_all);
}

TEST_F(RunRecordTest, IsFoundBelowAFolderButNotWithinAnother) {
  write(folder_ / "a/metrics.jsonl", "");
  write(folder_ / "a/earlier-1/metrics.jsonl", "");
  write(folder_ / "b/c/summary.json", "{}");
  write(folder_ / "d/job.pbtxt", "");
  write(folder_ / "e/job.pbtxt", "");
  write(folder_ / "e/.lock", "");
  fs::create_directory_symlink(folder_.path(), folder_ / "loop");
  EXPECT_THAT(find_runs(folder_.path()), ElementsAre(folder_ / "a", folder_ / "b/c", folder_ / "e"));
  EXPECT_THAT(find_runs(folder_ / "a"), ElementsAre(folder_ / "a"));
  EXPECT_THROW(find_runs(folder_ / "nothing"), StorageError);
}

}  // namespace
}  // namespace lockstep::train
