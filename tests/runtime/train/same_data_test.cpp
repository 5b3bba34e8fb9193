// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/same_data.h"

#include <gmock/gmock.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <mutex>
#include <semaphore>

#include "runtime/base/error.h"

namespace lockstep::train {
namespace {

using data::DataDigest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const DataDigest kTrain{"data.train", "50 samples of [2], 3 classes", "a", "b"};
const DataDigest kEval{"data.eval", "9 samples of [2], 3 classes", "c", "d"};

DataDigest with(DataDigest digest, std::string DataDigest::*part, const std::string& value) {
  digest.*part = value;
  return digest;
}

TEST(DataDifferences, OfRanksThatAgreeAreNone) {
  EXPECT_THAT(data_differences({{kTrain, kEval}}), IsEmpty());
  EXPECT_THAT(data_differences({{kTrain, kEval}, {kTrain, kEval}, {kTrain, kEval}}), IsEmpty());
}

TEST(DataDifferences, BlameNoneOfTwoRanks) {
  EXPECT_THAT(data_differences({{kTrain}, {with(kTrain, &DataDigest::labels, "x")}}),
              ElementsAre("data.train: labels differ: rank 0 / rank 1"));
  const DataDigest other = with(kTrain, &DataDigest::content, "x");
  EXPECT_THAT(data_differences({{kTrain}, {other}, {other}, {kTrain}}),
              ElementsAre("data.train: contents differ: ranks 0, 3 / ranks 1, 2"));
}

TEST(DataDifferences, NameTheRanksThatDifferFromMost) {
  const DataDigest labels = with(kEval, &DataDigest::labels, "x");
  EXPECT_THAT(data_differences({{kTrain, labels}, {kTrain, kEval}, {kTrain, kEval}}),
              ElementsAre("data.eval: labels of rank 0 differ from those of ranks 1, 2"));
  const DataDigest both = with(with(kTrain, &DataDigest::labels, "x"), &DataDigest::content, "x");
  const DataDigest content = with(kTrain, &DataDigest::content, "y");
  EXPECT_THAT(data_differences({{kTrain}, {both}, {kTrain}, {content}, {kTrain}}),
              ElementsAre("data.train: labels of rank 1 differ from those of ranks 0, 2, 3, 4",
                          "data.train: contents of ranks 1, 3 differ from those of ranks 0, 2, 4"));
}

TEST(DataDifferences, ShowOtherCountsAndNothingThatFollowsFromThem) {
  const DataDigest fewer{"data.train", "49 samples of [2], 3 classes", "x", "y"};
  EXPECT_THAT(data_differences({{fewer, kEval}, {kTrain, kEval}, {kTrain, kEval}}),
              ElementsAre("data.train: 50 samples of [2], 3 classes (ranks 1, 2) / "
                          "49 samples of [2], 3 classes (rank 0)"));
}

TEST(DataDifferences, OfManyRanksShowTheFirst) {
  std::vector<std::vector<DataDigest>> ranks;
  for (int rank = 0; rank < 9; ++rank) ranks.push_back({with(kTrain, &DataDigest::content, std::to_string(rank))});
  EXPECT_THAT(data_differences(ranks),
              ElementsAre("data.train: contents differ: rank 0 / rank 1 / rank 2 / rank 3 and 5 more"));
}

TEST(SameData, AreThoseOfALoneProcess) {
  const auto alone = comm::make_self_communicator();
  EXPECT_THAT(require_same_data([] { return std::vector{kTrain, kEval}; }, *alone), SizeIs(2));
  EXPECT_THAT(require_same_data([] { return std::vector<DataDigest>(); }, *alone), IsEmpty());
}

/// A group of one that says when it reduces something.
class Heard final : public comm::Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string description() const override { return "heard"; }
  Storage allocate(std::size_t bytes) override { return self_->allocate(bytes); }
  void all_reduce(const Tensor&, comm::ReduceOp, float, const Stream&) override {
    if (lost) throw PeerError("rank 1 is gone");
    signs.release();
  }
  void broadcast(const Tensor&, int, const Stream&) override {}
  void all_gather(const Tensor& in, const Tensor& out, const Stream& stream) override {
    self_->all_gather(in, out, stream);
  }
  void reduce_scatter(const Tensor&, const Tensor&, comm::ReduceOp, const Stream&) override {}
  void barrier(const Stream&) override {}
  std::shared_ptr<comm::Communicator> duplicate(const std::string& name) override { return self_->duplicate(name); }
  std::shared_ptr<comm::Communicator> split(int color, int key, const std::string& name) override {
    return self_->split(color, key, name);
  }

  std::counting_semaphore<> signs{0};
  bool lost = false;

 private:
  std::shared_ptr<comm::Communicator> self_ = comm::make_self_communicator();
};

TEST(SameData, AreReadWhileTheRanksHearOfEachOther) {
  Heard heard;
  const auto read = [&] {
    for (int sign = 0; sign < 2; ++sign) heard.signs.acquire();
    return std::vector{kTrain};
  };
  EXPECT_THAT(require_same_data(read, heard), SizeIs(1));
  const auto fail = [&]() -> std::vector<DataDigest> {
    heard.signs.acquire();
    throw StorageError("the disk is gone");
  };
  EXPECT_THROW(require_same_data(fail, heard), StorageError);
}

/// Lets a semaphore go for each line of the log.
class Signal final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit Signal(std::counting_semaphore<>& told) : told_(told) {}

 private:
  void sink_it_(const spdlog::details::log_msg&) override { told_.release(); }
  void flush_() override {}

  std::counting_semaphore<>& told_;
};

// A read that has begun has to end first, and may take minutes.
TEST(SameData, ALostRankIsToldBeforeTheDataIsRead) {
  std::counting_semaphore<> told{0};
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", std::make_shared<Signal>(told)));
  Heard heard;
  heard.lost = true;
  bool in_time = false;
  const auto read = [&] {
    in_time = told.try_acquire_for(std::chrono::seconds(60));
    return std::vector{kTrain};
  };
  EXPECT_THROW(require_same_data(read, heard), PeerError);
  EXPECT_TRUE(in_time);
  spdlog::set_default_logger(before);
}

}  // namespace
}  // namespace lockstep::train
