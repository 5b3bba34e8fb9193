// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/run_end.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/train/record/line_file.h"
#include "runtime/train/record/summary.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using std::chrono::system_clock;

class RunEnds : public testing::Test {
 protected:
  RunEnds() {
    std::string pattern = (fs::temp_directory_path() / "lockstep-end-XXXXXX").string();
    run_dir_ = ::mkdtemp(pattern.data());
  }
  ~RunEnds() override { fs::remove_all(run_dir_); }

  Json summary() const {
    std::ifstream in(run_dir_ / "summary.json");
    return Json::parse(in, nullptr, false);
  }
  std::vector<Json> events() const {
    std::vector<Json> found;
    std::ifstream in(run_dir_ / "metrics.jsonl");
    for (std::string line; std::getline(in, line);) found.push_back(Json::parse(line));
    return found;
  }
  void rank_zero_writes(const Error& error) const {
    write_summary(run_dir_, end_of(error, 5, "rank 0, in step 5", 0), Json{{"steps", 4}}, since_);
  }
  void record(const Error& error, const std::string& where = "rank 1, in step 5, backward") const {
    record_end(run_dir_, end_of(error, 5, where, 1), since_);
  }

  fs::path run_dir_;
  system_clock::time_point since_ = system_clock::now() - std::chrono::minutes(1);
};

const PeerError kLost("a rank is gone", "advice");
const StorageError kOwn("the disk is full", "advice");

TEST_F(RunEnds, OfALostRankReplacesWhatRankZeroKnewAndKeepsItsNumbers) {
  rank_zero_writes(kLost);
  record(PeerError("rank 1 was killed"));
  EXPECT_EQ(summary()["error"]["message"], "rank 1 was killed");
  EXPECT_EQ(summary()["error"]["where"], "rank 1, in step 5, backward");
  EXPECT_EQ(summary()["steps"], 4);
}

TEST_F(RunEnds, ThatExplainsTheOthersStays) {
  rank_zero_writes(kOwn);
  record(kLost);
  EXPECT_EQ(summary()["error"]["message"], "the disk is full");
  record(StorageError("another one"));
  EXPECT_EQ(summary()["error"]["message"], "the disk is full");
}

TEST_F(RunEnds, OfAnotherRankExplainsWhyRankZeroLostIt) {
  record(kOwn);
  rank_zero_writes(kLost);
  EXPECT_EQ(summary()["exit_code"], 4);
  EXPECT_EQ(summary()["error"]["where"], "rank 1, in step 5, backward");
  EXPECT_EQ(summary()["steps"], 4);
}

TEST_F(RunEnds, IsRankZerosWhereBothHaveFailed) {
  record(kOwn);
  rank_zero_writes(NumericsError("the loss is nan"));
  EXPECT_EQ(summary()["exit_code"], 5);
}

TEST_F(RunEnds, OfAnEarlierRunIsReplacedWhole) {
  rank_zero_writes(kOwn);
  since_ = system_clock::now() + std::chrono::minutes(1);
  record(kLost);
  EXPECT_EQ(summary()["error"]["message"], "a rank is gone");
  EXPECT_FALSE(summary().contains("steps")) << "another run's numbers";
}

TEST_F(RunEnds, ThatIsAGuessGivesWayToAnything) {
  RunEnd guess = end_of(kOwn, 0, "", 0);
  guess.is_guess = true;
  rank_zero_writes(kLost);
  record_end(run_dir_, guess, since_);
  EXPECT_EQ(summary()["exit_code"], 7);
}

TEST_F(RunEnds, OfARefusedRunLeavesTheRecordOfAnEarlierOne) {
  std::ofstream(run_dir_ / "metrics.jsonl") << "{}\n";
  record(UsageError("no"));
  EXPECT_FALSE(fs::exists(run_dir_ / "summary.json"));
  fs::remove(run_dir_ / "metrics.jsonl");
  record(UsageError("no"));
  EXPECT_EQ(summary()["exit_code"], 2);
}

TEST_F(RunEnds, MakeNoRunDirectory) {
  fs::remove_all(run_dir_);
  record(kLost);
  EXPECT_FALSE(fs::exists(run_dir_));
}

TEST_F(RunEnds, AreOneEventWhoeverTellsOfThem) {
  record(kLost);
  record_event_of_end(run_dir_, since_, false);
  record_event_of_end(run_dir_, since_, false);
  ASSERT_EQ(events().size(), 1u);
  EXPECT_EQ(events()[0]["event"], "failed");
  EXPECT_EQ(events()[0]["exit_code"], 7);
  EXPECT_EQ(events()[0]["detail"], "a rank is gone");
}

TEST_F(RunEnds, ThatWereAskedForAreNoFailures) {
  record(Error(ExitCode::kPreempted, "stopped, as asked, without saving"));
  EXPECT_EQ(summary()["status"], "preempted");
}

TEST_F(RunEnds, StandInWholeLinesBehindAHalfWrittenOne) {
  std::ofstream(run_dir_ / "metrics.jsonl") << "{\"step\": 3, \"lo";
  LineFile(run_dir_ / "metrics.jsonl").append("{}\n");
  std::ifstream in(run_dir_ / "metrics.jsonl");
  std::string first, second;
  std::getline(in, first);
  std::getline(in, second);
  EXPECT_EQ(second, "{}");
}

// Writing to it would wait for a reader for ever. It may be moved away: the run goes on and tries again.
TEST_F(RunEnds, AreNotWrittenIntoAPipe) {
  ASSERT_EQ(mkfifo((run_dir_ / "metrics.jsonl").c_str(), 0600), 0);
  LineFile file(run_dir_ / "metrics.jsonl");
  EXPECT_THROW(file.append("{}\n"), FileError);
  fs::remove(run_dir_ / "metrics.jsonl");
  file.append("{}\n");
  EXPECT_EQ(events().size(), 1u);
}

// Opening it to read waits for a writer for ever.
TEST_F(RunEnds, AreNotLookedForInAPipe) {
  ASSERT_EQ(mkfifo((run_dir_ / "metrics.jsonl").c_str(), 0600), 0);
  record_end_from_outside(run_dir_, end_of(kOwn, 5, "", 0), since_, false);
  EXPECT_EQ(summary()["exit_code"], 4);
  fs::remove(run_dir_ / "summary.json");
  ASSERT_EQ(mkfifo((run_dir_ / "summary.json").c_str(), 0600), 0);
  EXPECT_FALSE(describes(run_dir_ / "summary.json", 5, "digest"));
  record_end_from_outside(run_dir_, end_of(kOwn, 6, "", 0), since_, false);
  EXPECT_EQ(summary()["step"], 6) << "a file in the pipe's place";
}

// What somebody has written there must not end this run with an exception of the JSON library, or a full stack.
TEST_F(RunEnds, AreReadWhateverStandsThere) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  for (const std::string& text :
       {"{\"status\":\"failed\",\"x\":" + deep + "}", std::string(R"({"status":"failed"})"),
        std::string(R"({"status":7,"exit_code":"x","steps":"y","weights_digest":[]})"),
        std::string(R"({"status":"done","exit_code":null,"error":{},"step":-1,"steps":5.5,"weights_digest":{}})")}) {
    std::ofstream(run_dir_ / "summary.json") << text;
    std::ofstream(run_dir_ / "metrics.jsonl") << "{\"event\":" << deep << "}\n{\"event\":7,\"time\":\"now\"}\n";
    EXPECT_FALSE(describes(run_dir_ / "summary.json", 5, "digest"));
    EXPECT_NO_THROW(record_event_of_end(run_dir_, since_, false)) << text.substr(0, 100);
    EXPECT_NO_THROW(rank_zero_writes(kLost)) << text.substr(0, 100);
    EXPECT_TRUE(summary()["error"].is_object() || summary()["error"].is_null());
  }
}

TEST_F(RunEnds, AreNotWrittenIntoAFileThatIsGone) {
  LineFile file(run_dir_ / "metrics.jsonl");
  file.append("{}\n");
  fs::rename(run_dir_ / "metrics.jsonl", run_dir_ / "elsewhere");
  EXPECT_FALSE(file.in_place());
  EXPECT_THROW(file.append("{}\n"), StorageError);
  std::ofstream(run_dir_ / "metrics.jsonl") << "of another run\n";
  EXPECT_THROW(file.append("{}\n"), StorageError);
}

TEST_F(RunEnds, AreNotWrittenIntoAFolderThatIsGone) {
  LineFile file(run_dir_ / "metrics.jsonl");
  EXPECT_TRUE(file.in_place()) << "it will be made";
  fs::remove_all(run_dir_);
  EXPECT_FALSE(file.in_place());
  EXPECT_THROW(file.append("{}\n"), StorageError);
  EXPECT_FALSE(fs::exists(run_dir_));
}

}  // namespace
}  // namespace lockstep::train
