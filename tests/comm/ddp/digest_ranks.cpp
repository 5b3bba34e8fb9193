// SPDX-License-Identifier: Apache-2.0
// Ranks whose weights have drifted apart, or that never held the same model, are told so by name.
#include <gmock/gmock.h>

#include <functional>

#include "comm/ddp/digest.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

LearnerOptions options() {
  return {.model = MlpOptions{.hidden = {6}, .batch_norm = true},
          .optimizer = with_adamw({.lr = 0.01}),
          .amp = {.opt_level = amp::OptLevel::kO1},
          .scaler = {}};
}

/// The text of the PeerError that `action` throws on this rank, "" where it throws none.
std::string peer_error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const PeerError& error) {
    return error.what();
  }
  return "";
}

/// Flips one bit of byte `at`.
void flip(const Tensor& tensor, std::size_t at) {
  const Tensor host = tensor.to(kCpu);
  static_cast<unsigned char*>(host.data())[at] ^= 0x10;
  if (tensor.device() != kCpu) tensor.copy_from(host);
}

class Digest : public testing::Test {
 protected:
  Digest() : learner_(options(), 4, 1) {
    learner_.join();
    learner_.backward(make_samples(8, 4, 1, 1), part_of(8, 1, world().rank(), world().size(), Shares::kEven), 1);
    learner_.step();
  }

  std::string compare() {
    return peer_error_of(
        [this] { require_equal_weights(learner_.arena(), learner_.optimizer().state(), *world().communicator()); });
  }

  /// Flips one bit on one rank, expects every rank to hear of `name`, and flips it back.
  void expect_found(const Tensor& tensor, const std::string& name) {
    for (int rank = 0; rank < world().size(); ++rank) {
      const std::size_t at = tensor.bytes() - 1 - static_cast<std::size_t>(rank);
      if (world().rank() == rank) flip(tensor, at);
      const std::string message = compare();
      if (world().rank() == rank) flip(tensor, at);
      const std::string alone = "rank " + std::to_string(rank) + " differs from";
      if (world().size() == 1) {
        EXPECT_EQ(message, "");
      } else if (world().size() == 2) {  // nobody knows which of two is right
        EXPECT_THAT(message, AllOf(HasSubstr(name + ":"), HasSubstr("cannot be told"))) << rank;
      } else {
        EXPECT_THAT(message, AllOf(HasSubstr(name + ":"), HasSubstr(alone))) << rank;
      }
    }
    EXPECT_EQ(compare(), "");
  }

  Learner learner_;
};

TEST_F(Digest, OfEqualRanksIsSilent) { EXPECT_EQ(compare(), ""); }

TEST_F(Digest, NamesTheWeightOfWhichABitFlipped) {
  for (const nn::Arena::Slot& slot : learner_.arena().slots()) {
    expect_found(learner_.arena().master(slot), slot.parameter.name);
  }
}

TEST_F(Digest, NamesTheOptimizerStateOfWhichABitFlipped) {
  for (const nn::Arena::Slot& slot : learner_.arena().slots()) {
    for (const auto& [name, tensor] : learner_.optimizer().state()) {
      expect_found(tensor.rows(slot.begin, slot.end), slot.parameter.name + " (" + name + ")");
    }
  }
}

TEST_F(Digest, NamesTheRunningStatisticsOfWhichABitFlipped) {
  for (const auto& [name, statistics] : learner_.arena().statistics()) expect_found(statistics->committed(), name);
}

TEST_F(Digest, OfWeightsIsTheSameOnEveryRankAndChangesWithAnyBit) {
  const std::string digest = weights_digest(learner_.arena());
  EXPECT_EQ(digest.size(), 32u);
  EXPECT_EQ(world().communicator()->broadcast_text(digest, 0), digest);
  for (const nn::Arena::Slot& slot : learner_.arena().slots()) {
    const Tensor weight = learner_.arena().master(slot);
    flip(weight, 0);
    EXPECT_NE(weights_digest(learner_.arena()), digest) << slot.parameter.name;
    flip(weight, 0);
  }
}

class Models : public testing::TestWithParam<int> {};  // the rank that builds another one
INSTANTIATE_TEST_SUITE_P(OddRank, Models, testing::Range(0, 4));

void expect_refused(int odd, const MlpOptions& model, const std::string& named) {
  LearnerOptions mine = options();
  if (world().rank() == odd) mine.model = model;
  Learner learner(mine, 4, 1);
  const std::string message = peer_error_of([&] { learner.join(); });
  const std::string first_other = std::to_string(odd == 0 ? 1 : odd);
  EXPECT_THAT(message, AllOf(HasSubstr("rank 0 has "), HasSubstr("rank " + first_other + " has "), HasSubstr(named)));
}

TEST_P(Models, ThatDifferAreRefused) {
  if (GetParam() >= world().size() || world().size() == 1) GTEST_SKIP() << "needs more ranks";
  expect_refused(GetParam(), {.hidden = {7}, .batch_norm = true}, "output.weight float32 [5, 7]");
  expect_refused(GetParam(), {.hidden = {6}}, "hidden0_linear.bias");
  expect_refused(GetParam(), {.hidden = {6, 6}, .batch_norm = true}, "hidden1_norm.bias");
}

TEST(Models, StartWithTheWeightsOfRankZero) {
  LearnerOptions of_the_rank = options();
  Learner first(of_the_rank, 4, 1);
  of_the_rank.seed = static_cast<std::uint64_t>(world().rank());
  Learner learner(of_the_rank, 4, 1);
  for (const auto& [name, statistics] : learner.arena().statistics()) {
    kernels::fill(statistics->committed(), world().rank() + 3);
  }
  learner.join();
  EXPECT_TRUE(bits_of({learner.arena().masters(), learner.arena().copies()}) ==
              bits_of({first.arena().masters(), first.arena().copies()}));
  for (const auto& [name, statistics] : learner.arena().statistics()) {
    EXPECT_THAT(floats_of(statistics->committed()), testing::Each(3.0f)) << name;
  }
}

}  // namespace
}  // namespace lockstep::comm
