// SPDX-License-Identifier: Apache-2.0
#include "amp/grad_scaler/verdict.h"

#include <gmock/gmock.h>

#include "runtime/base/error.h"
#include "tests/support/devices.h"

namespace lockstep::amp {
namespace {

using lockstep::devices::device;

/// What ranks put into one all_reduce, gathered in one process.
struct Meeting {
  std::vector<std::vector<float>> ballots;
};

/// A rank that first only casts its ballot, and then, when every rank has, gets the result.
class Rank final : public comm::Communicator {
 public:
  Rank(Meeting& meeting, int rank, int size) : meeting_(meeting), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string description() const override { return "test"; }
  void all_reduce(const Tensor& buffer, comm::ReduceOp op, float premultiply, const Stream&) override {
    EXPECT_EQ(op, comm::ReduceOp::kMax);
    EXPECT_EQ(premultiply, 1.0f);
    const Tensor host = buffer.to(kCpu);
    const std::span<float> mine = host.mutable_as<float>();
    meeting_.ballots.emplace_back(mine.begin(), mine.end());
    for (const std::vector<float>& theirs : meeting_.ballots) {
      for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = std::max(mine[i], theirs[i]);
    }
    if (buffer.device() != kCpu) buffer.copy_from(host);
  }

  Storage allocate(std::size_t bytes) override { return Storage::allocate(bytes, device()); }
  void broadcast(const Tensor&, int, const Stream&) override { throw UsageError("unexpected"); }
  void all_gather(const Tensor&, const Tensor&, const Stream&) override { throw UsageError("unexpected"); }
  void reduce_scatter(const Tensor&, const Tensor&, comm::ReduceOp, const Stream&) override {
    throw UsageError("unexpected");
  }
  void barrier(const Stream&) override { throw UsageError("unexpected"); }
  std::shared_ptr<comm::Communicator> duplicate(const std::string&) override { throw UsageError("unexpected"); }
  std::shared_ptr<comm::Communicator> split(int, int, const std::string&) override { return nullptr; }

 private:
  Meeting& meeting_;
  int rank_;
  int size_;
};

Tensor flags(const std::vector<float>& values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())}).to(device());
}

struct Votes {
  Tensor reduced;
  Tensor local;
};

/// The verdict that each rank comes to.
std::vector<Verdict> verdicts(const std::vector<Votes>& votes) {
  const int size = static_cast<int>(votes.size());
  Meeting meeting;
  std::vector<Verdict> all(votes.size());
  for (int round = 0; round < 2; ++round) {  // in the second one everybody has voted
    for (int rank = 0; rank < size; ++rank) {
      Rank communicator(meeting, rank, size);
      const auto at = static_cast<std::size_t>(rank);
      all[at] = *agree(votes[at].reduced, votes[at].local, communicator);
    }
  }
  return all;
}

void expect_all(const std::vector<Verdict>& found, bool found_inf, int slot, int rank) {
  for (const Verdict& verdict : found) {
    EXPECT_EQ(verdict.found_inf, found_inf);
    EXPECT_EQ(verdict.slot, slot);
    EXPECT_EQ(verdict.rank, rank);
  }
}

TEST(Agreement, NobodyFoundAnything) {
  expect_all(verdicts({{flags({0, 0, 0}), flags({0, 0, 0})}, {flags({0, 0, 0}), {}}}), false, -1, -1);
}

TEST(Agreement, OneRanksFindingIsEverybodysVerdict) {
  const Tensor clean = flags({0, 0, 0});
  expect_all(verdicts({{clean, clean}, {clean, flags({0, 1, 1})}, {clean, clean}}), true, 1, 1);
  expect_all(verdicts({{clean, {}}, {clean, {}}, {flags({0, 0, 1}), {}}}), true, 2, Verdict::kUnknown);
}

TEST(Agreement, NamesTheLowestRankOfTheFirstBadParameter) {
  const Tensor bad = flags({0, 1, 1});
  expect_all(verdicts({{bad, flags({0, 0, 1})}, {bad, flags({0, 1, 0})}, {bad, flags({0, 1, 0})}}), true, 1, 1);
}

TEST(Agreement, ASumThatOverflowedIsNobodysFault) {
  const Tensor clean = flags({0, 0}), bad = flags({1, 0});
  expect_all(verdicts({{bad, clean}, {bad, clean}}), true, 0, -1);
}

TEST(Agreement, OfALoneRank) {
  const auto self = comm::make_self_communicator(device());
  EXPECT_FALSE(agree(flags({0, 0}), {}, *self).read().found_inf);
  const Verdict verdict = *agree(flags({0, 1}), flags({0, 1}), *self);
  EXPECT_TRUE(verdict.found_inf);
  EXPECT_EQ(verdict.slot, 1);
  EXPECT_EQ(verdict.rank, 0);
}

}  // namespace
}  // namespace lockstep::amp
