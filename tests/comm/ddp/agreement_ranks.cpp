// SPDX-License-Identifier: Apache-2.0
// One verdict: whatever is not finite on any rank, every rank skips, and a skip changes nothing but the scale.
#include <gmock/gmock.h>

#include <limits>

#include "amp/grad_scaler/verdict.h"
#include "comm/ddp/digest.h"
#include "runtime/kernels/assign.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/losses.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

using amp::Verdict;

constexpr int kMicroBatches = 3;
constexpr std::int64_t kAgreementSamples = 13;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor flags(std::int64_t count, const std::vector<std::int64_t>& raised) {
  const Tensor all = Tensor::zeros({count}, DType::kFloat32);
  for (const std::int64_t at : raised) all.mutable_as<float>()[static_cast<std::size_t>(at)] = 1.0f;
  return all.to(rank_device());
}

void expect_verdict(const Verdict& found, const Verdict& expected) {
  EXPECT_EQ(found.found_inf, expected.found_inf);
  EXPECT_EQ(found.slot, expected.slot);
  EXPECT_EQ(found.rank, expected.rank);
}

TEST(Agreement, OfFiniteRanksFindsNothing) {
  expect_verdict(*amp::agree(flags(4, {}), flags(4, {}), *world().communicator()), {false, -1, -1});
  expect_verdict(*amp::agree(flags(4, {}), {}, *world().communicator()), {false, -1, -1});
}

TEST(Agreement, NamesSlotAndRankOfASingleBadGradient) {
  for (int rank = 0; rank < world().size(); ++rank) {
    for (std::int64_t slot = 0; slot < 5; ++slot) {
      const bool mine = world().rank() == rank;
      const Tensor local = flags(5, mine ? std::vector{slot} : std::vector<std::int64_t>{});
      // Whether or not the reduction has carried it to the others.
      expect_verdict(*amp::agree(flags(5, {}), local, *world().communicator()), {true, static_cast<int>(slot), rank});
      expect_verdict(*amp::agree(flags(5, {slot}), local, *world().communicator()),
                     {true, static_cast<int>(slot), rank});
    }
  }
}

TEST(Agreement, TakesTheFirstSlotThenTheLowestRank) {
  const int last = world().size() - 1;
  // Every rank has a bad slot 3, the last one also a bad slot 2.
  const Tensor local =
      flags(5, world().rank() == last ? std::vector<std::int64_t>{2, 3} : std::vector<std::int64_t>{3});
  expect_verdict(*amp::agree(flags(5, {2, 3}), local, *world().communicator()), {true, 2, last});
  expect_verdict(*amp::agree(flags(5, {3}), flags(5, {3}), *world().communicator()), {true, 3, 0});
}

TEST(Agreement, NamesNoRankWhereOnlyTheSumIsBadOrNobodyLooked) {
  expect_verdict(*amp::agree(flags(5, {4}), flags(5, {}), *world().communicator()), {true, 4, -1});
  // A lone rank has nobody else to blame.
  const int rank = world().size() == 1 ? 0 : Verdict::kUnknown;
  expect_verdict(*amp::agree(flags(5, {4}), {}, *world().communicator()), {true, 4, rank});
}

/// A rank that trains, and in whose gradients something can be planted.
class Skips : public testing::Test {
 protected:
  explicit Skips(const DdpOptions& ddp = {})
      : learner_({.model = MlpOptions{.hidden = {6}, .dropout = 0.2, .batch_norm = true},
                  .optimizer = with_adamw({.lr = 0.01}),
                  .amp = {.opt_level = amp::OptLevel::kO1},
                  .scaler = {.init = 1024},
                  .ddp = ddp},
                 4, 1) {
    learner_.join();
    learner_.ddp().reducer().set_on_gradient([this](std::size_t slot) {
      if (slot == slot_ && micro_batch_-- == 0) plant(value_);
    });
    train();
  }

  void plant(float value) {
    const nn::Arena::Slot& slot = learner_.arena().slots()[slot_];
    const Tensor& grads = learner_.arena().grads();
    kernels::fill(grads.rows(slot.end - 1, slot.end), static_cast<double>(value));
  }

  /// From now on, this rank's gradient of `slot` holds `value` as of this micro-batch of the next step.
  void arm(std::size_t slot, int micro_batch, float value) {
    slot_ = slot;
    micro_batch_ = micro_batch;
    value_ = value;
  }

  Verdict train() {
    ++step_;
    learner_.backward(make_samples(kAgreementSamples, 4, 1, step_),
                      part_of(kAgreementSamples, kMicroBatches, world().rank(), world().size(), Shares::kEven), step_);
    const Verdict verdict = learner_.step();
    slot_ = kNoSlot;
    return verdict;
  }

  void expect_skip(const Verdict& expected) {
    const std::vector<std::string> before = bits_of(state_of(learner_));
    const std::int64_t applied = learner_.optimizer().applied_steps();
    const float scale = learner_.scaler().get_scale();
    expect_verdict(train(), expected);
    EXPECT_TRUE(bits_of(state_of(learner_)) == before);
    EXPECT_EQ(learner_.optimizer().applied_steps(), applied);
    EXPECT_EQ(learner_.scaler().get_scale(), std::max(scale / 2, 1.0f));
    EXPECT_EQ(learner_.scaler().growth_tracker(), 0u);
    EXPECT_EQ(learner_.scaler().consecutive_skips(), 1u);
  }

  void expect_step() {
    const std::vector<std::string> before = bits_of(state_of(learner_));
    const std::int64_t applied = learner_.optimizer().applied_steps();
    expect_verdict(train(), {false, -1, -1});
    const std::vector<std::string> after = bits_of(state_of(learner_));
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_FALSE(before[i] == after[i]) << i;
    EXPECT_EQ(learner_.optimizer().applied_steps(), applied + 1);
    EXPECT_EQ(learner_.scaler().consecutive_skips(), 0u);
  }

  static constexpr std::size_t kNoSlot = std::numeric_limits<std::size_t>::max();
  Learner learner_;
  std::uint64_t step_ = 0;
  std::size_t slot_ = kNoSlot;
  int micro_batch_ = 0;
  float value_ = 0;
};

/// Two backward passes in one step, both reduced: what one rank's was in the first is on every rank in the second.
TEST_F(Skips, NameTheRankAfterTwoReducedPasses) {
  for (int bad_pass = 0; bad_pass < 2; ++bad_pass) {
    for (int rank = 0; rank < world().size(); ++rank) {
      SCOPED_TRACE("pass " + std::to_string(bad_pass) + ", rank " + std::to_string(rank));
      arm(world().rank() == rank ? 2 : kNoSlot, bad_pass, kInf);
      ++step_;
      learner_.optimizer().zero_grad();
      const Samples samples = make_samples(kAgreementSamples, 4, 1, step_);
      const auto [begin, end] = cut({0, kAgreementSamples}, world().rank(), world().size(), Shares::kEven);
      for (int pass = 0; pass < 2; ++pass) {
        const nn::StepContext context(7, step_, begin);
        const Tensor output = learner_.ddp().forward(samples.input.rows(begin, end).to(rank_device()));
        learner_.scaler()
            .scale(ops::cross_entropy(output, samples.target.rows(begin, end).to(rank_device())))
            .backward();
      }
      expect_verdict(learner_.step(), {true, 2, rank});
      slot_ = kNoSlot;
    }
  }
}

TEST_F(Skips, ChangeNothingButTheScaleWhateverTheLayerTheRankAndTheMicroBatch) {
  const std::size_t slots = learner_.arena().slots().size();
  for (std::size_t slot = 0; slot < slots; ++slot) {
    for (int rank = 0; rank < world().size(); ++rank) {
      for (int micro_batch = 0; micro_batch < kMicroBatches; ++micro_batch) {
        SCOPED_TRACE(learner_.arena().slots()[slot].parameter.name + ", rank " + std::to_string(rank) +
                     ", micro-batch " + std::to_string(micro_batch));
        if (world().rank() == rank) arm(slot, micro_batch, micro_batch % 2 == 0 ? kInf : kNan);
        expect_skip({true, static_cast<int>(slot), rank});
        expect_step();
      }
    }
  }
  require_equal_weights(learner_.arena(), learner_.optimizer().state(), *world().communicator());
}

class SummedSkips : public Skips {
 protected:
  SummedSkips() : Skips({.gradient_average = false}) {}
};

TEST_F(SummedSkips, NameNoRankWhereOnlyTheSumOverflows) {
  if (world().size() == 1) GTEST_SKIP() << "needs a sum";
  for (std::size_t slot = 0; slot < learner_.arena().slots().size(); ++slot) {
    arm(slot, kMicroBatches - 1, 60000.0f);  // finite in float16, twice that is not
    expect_skip({true, static_cast<int>(slot), -1});
    expect_step();
  }
}

class AveragedSkips : public Skips {
 protected:
  AveragedSkips() : Skips({.gradient_predivide_factor = 4}) {}
};

TEST_F(AveragedSkips, NeedNoneWhereTheAverageIsFinite) {
  arm(0, kMicroBatches - 1, 60000.0f);
  expect_step();
}

}  // namespace
}  // namespace lockstep::comm
