// SPDX-License-Identifier: Apache-2.0
// Ranks that would step in different ways are told so by name, before anything changes. Run as 1 to 4 ranks.
#include <gmock/gmock.h>

#include <functional>

#include "runtime/base/error.h"
#include "runtime/ops/ops.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

using amp::Verdict;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::int64_t kOddStateSamples = 8;

/// What one rank has different, and the words for it.
struct OddState {
  std::string name;
  std::function<void(Learner&)> change;
  std::string of_odd;
  std::string of_others;
};

/// A change of what the scaler would save.
template <class Change>
std::function<void(Learner&)> loads(Change change) {
  return [change](Learner& learner) {
    amp::GradScalerState state = learner.scaler().state_dict();
    change(state);
    learner.scaler().load_state_dict(state);
  };
}

class OddRank : public testing::TestWithParam<OddState> {
 protected:
  OddRank()
      : learner_({.model = MlpOptions{.hidden = {6}, .batch_norm = true},
                  .optimizer = with_adamw({.lr = 0.01}),
                  .amp = {.opt_level = amp::OptLevel::kO1},
                  .scaler = {.init = 1024}},
                 4, 1) {
    learner_.join();
    backward();
    learner_.step();
  }

  void backward() {
    ++step_;
    learner_.backward(make_samples(kOddStateSamples, 4, 1, step_),
                      part_of(kOddStateSamples, 1, world().rank(), world().size(), Shares::kEven), step_);
  }

  bool is_odd() const { return world().rank() == world().size() - 1; }

  /// The step is refused, on every rank alike; `step` takes it, or does what comes before it.
  void expect_refused(const std::function<DeviceValue<Verdict>()>& step) {
    const std::vector<std::string> before = bits_of(state_of(learner_));
    const auto is_told = ThrowsMessage<PeerError>(
        HasSubstr("the ranks disagree on how to step: rank 0 has " + GetParam().of_others + ", rank " +
                  std::to_string(world().size() - 1) + " has " + GetParam().of_odd));
    if (rank_device() == kCpu) {
      EXPECT_THAT(step, is_told);
    } else {
      const Verdict verdict = *step();
      EXPECT_EQ(verdict.found_inf, Verdict::kNotTaken);
      EXPECT_EQ(verdict.slot, -1);
      EXPECT_EQ(verdict.rank, Verdict::kRanksDiffer);
      EXPECT_THAT([&] { learner_.scaler().require_same_state(learner_.optimizer()); }, is_told);
      EXPECT_THROW(learner_.scaler().require_progress(learner_.scaler().state().read(), "", verdict.rank), PeerError);
    }
    EXPECT_TRUE(bits_of(state_of(learner_)) == before);
  }

  Learner learner_;
  std::uint64_t step_ = 0;
};

TEST_P(OddRank, IsNamedBeforeAnythingChanges) {
  const std::int64_t applied = learner_.optimizer().applied_steps();
  if (is_odd()) GetParam().change(learner_);
  if (world().size() == 1) {
    backward();
    EXPECT_EQ(learner_.step().found_inf, 0.0f) << "a lone rank may change what it likes";
    return;
  }
  const std::int64_t known = learner_.optimizer().applied_steps();
  EXPECT_TRUE(is_odd() || known == applied);
  backward();
  expect_refused([this] { return learner_.scaler().step(learner_.optimizer()); });
  EXPECT_EQ(learner_.optimizer().applied_steps(), known);
}

TEST_P(OddRank, IsNamedByUnscale) {
  if (world().size() == 1) GTEST_SKIP() << "nobody differs";
  if (is_odd()) GetParam().change(learner_);
  backward();
  expect_refused([this] {
    learner_.scaler().unscale_(learner_.optimizer());
    return learner_.scaler().step(learner_.optimizer());
  });
}

INSTANTIATE_TEST_SUITE_P(
    States, OddRank,
    testing::Values(
        OddState{"Scale", loads([](amp::GradScalerState& state) { state.scale = 512; }), "a loss scale of 512",
                 "a loss scale of 1024"},
        OddState{"GrowthTracker", loads([](amp::GradScalerState& state) { state.growth_tracker = 70; }),
                 "a growth tracker of 70", "a growth tracker of 1"},
        OddState{"SkippedSteps", loads([](amp::GradScalerState& state) { state.skipped_steps = 3; }),
                 "skipped steps: 3", "skipped steps: 0"},
        OddState{"GrowthFactor", [](Learner& learner) { learner.scaler().set_growth_factor(3); }, "growth_factor: 3",
                 "growth_factor: 2"},
        OddState{"LearningRate", [](Learner& learner) { learner.optimizer().set_learning_rate(0.25); },
                 "a learning rate of 0.25", "a learning rate of 0.01"},
        OddState{"AppliedSteps", [](Learner& learner) { learner.optimizer().set_applied_steps(7); }, "applied steps: 7",
                 "applied steps: 1"},
        OddState{"FrozenParameter",
                 [](Learner& learner) { learner.arena().slots()[0].parameter.tensor.set_requires_grad(false); },
                 "output.bias frozen, lr_scale 1, weight_decay 0", "output.bias trained, lr_scale 1, weight_decay 0"}),
    [](const auto& at) { return at.param.name; });

/// The ballot of a step in which all ranks are alike is the only collective of scaler and optimizer.
TEST(EvenRanks, ChangeTheirStateTogether) {
  Learner learner({.model = MlpOptions{.hidden = {6}}, .scaler = {.init = 1024}}, 4, 1);
  learner.join();
  for (std::uint64_t step = 1; step <= 3; ++step) {
    learner.scaler().set_growth_factor(2.0 + static_cast<double>(step));
    learner.optimizer().set_learning_rate(0.1 / static_cast<double>(step));
    learner.arena().slots()[0].parameter.tensor.set_requires_grad(step == 2);
    learner.backward(make_samples(kOddStateSamples, 4, 1, step),
                     part_of(kOddStateSamples, 1, world().rank(), world().size(), Shares::kEven), step);
    EXPECT_EQ(learner.step().found_inf, 0.0f) << step;
  }
}

TEST(OddOptions, OfAnOptimizerAreNamedByItsFirstStep) {
  const bool odd = world().size() > 1 && world().rank() == world().size() - 1;
  Learner learner({.model = MlpOptions{.hidden = {6}},
                   .optimizer = with_adamw({.lr = 0.01, .beta1 = odd ? 0.8 : 0.9}),
                   .scaler = {.init = 1024}},
                  4, 1);
  learner.join();
  learner.backward(make_samples(kOddStateSamples, 4, 1, 1),
                   part_of(kOddStateSamples, 1, world().rank(), world().size(), Shares::kEven), 1);
  if (world().size() == 1) {
    EXPECT_EQ(learner.step().found_inf, 0.0f);
    return;
  }
  const auto is_told = ThrowsMessage<PeerError>(
      HasSubstr("rank 0 has beta1: 0.9, rank " + std::to_string(world().size() - 1) + " has beta1: 0.8"));
  if (rank_device() == kCpu) {
    EXPECT_THAT([&] { learner.step(); }, is_told);
  } else {
    EXPECT_EQ(learner.step().rank, Verdict::kRanksDiffer);
    EXPECT_THAT([&] { learner.scaler().require_same_state(learner.optimizer()); }, is_told);
  }
}

TEST(OddOptions, OfAScalerAreNamedWhenItIsMade) {
  const bool odd = world().size() > 1 && world().rank() == world().size() - 1;
  const auto make = [odd] { amp::GradScaler(world(), {.backoff_factor = odd ? 0.25 : 0.5}); };
  if (world().size() == 1) return make();
  EXPECT_THAT(make,
              ThrowsMessage<PeerError>(HasSubstr("rank 0 has backoff_factor: 0.5, rank " +
                                                 std::to_string(world().size() - 1) + " has backoff_factor: 0.25")));
}

}  // namespace
}  // namespace lockstep::comm
