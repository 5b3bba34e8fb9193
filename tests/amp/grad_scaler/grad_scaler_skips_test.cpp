// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "runtime/base/error.h"
#include "tests/amp/grad_scaler/scaled_model.h"

namespace lockstep::amp {
namespace {

using amp::testing::device;
using amp::testing::ScaledModel;
using amp::testing::scaler_with;
using amp::testing::state_of;
using amp::testing::values_of;
using ::testing::HasSubstr;

TEST(Skip, InEveryPositionOfAnAccumulationCycleChangesNothing) {
  constexpr int kMicroBatches = 4;
  ScaledModel straight;
  GradScaler undisturbed = scaler_with({.init = 16, .backoff_factor = 0.5, .growth_interval = 100});
  const auto cycle = [](ScaledModel& model, GradScaler& scaler, int bad) {
    model.optimizer->zero_grad();
    for (int micro = 0; micro < kMicroBatches; ++micro) model.backward(scaler, micro != bad);
    const Verdict verdict = *scaler.step(*model.optimizer);
    scaler.update();
    return verdict;
  };
  cycle(straight, undisturbed, -1);
  cycle(straight, undisturbed, -1);
  for (int bad = 0; bad < kMicroBatches; ++bad) {
    SCOPED_TRACE("overflow in micro-batch " + std::to_string(bad));
    GradScaler scaler = scaler_with({.init = 32, .backoff_factor = 0.5, .growth_interval = 1});
    ScaledModel model;
    EXPECT_FALSE(cycle(model, scaler, -1).found_inf);
    const auto before = state_of(*model.optimizer);
    EXPECT_TRUE(cycle(model, scaler, bad).found_inf);
    EXPECT_EQ(state_of(*model.optimizer), before) << "weights, momentum, statistics, step count, rate";
    EXPECT_EQ(scaler.get_scale(), 32) << "grown once, backed off once";
    EXPECT_FALSE(cycle(model, scaler, -1).found_inf);
    EXPECT_EQ(state_of(*model.optimizer), state_of(*straight.optimizer)) << "scales are powers of two: the same bits";
  }
}

TEST(Skip, NamesTheFirstBadParameterInTheArenasOrder) {
  GradScaler scaler = scaler_with();
  ScaledModel model;
  const auto spoil = [&](std::initializer_list<std::size_t> parameters) {
    model.optimizer->zero_grad();
    model.backward(scaler);
    for (const std::size_t i : parameters) {
      model.spoil(i, 1, std::numeric_limits<double>::quiet_NaN());
    }
    const Verdict verdict = *scaler.step(*model.optimizer);
    scaler.update();
    return verdict.slot < 0 ? "" : model.arena->slots()[static_cast<std::size_t>(verdict.slot)].parameter.name;
  };
  EXPECT_EQ(spoil({}), "");
  EXPECT_EQ(spoil({0}), "dense.weight");
  EXPECT_EQ(spoil({0, 2}), "norm.weight") << "backward reaches it first";
  EXPECT_EQ(spoil({3, 1}), "norm.bias");
}

/// One of two ranks, the other of which has finite gradients.
class FirstOfTwo final : public comm::Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  std::string description() const override { return "test"; }
  Storage allocate(std::size_t bytes) override { return Storage::allocate(bytes, device()); }
  void all_reduce(const Tensor&, comm::ReduceOp, float, const Stream&) override {}
  void broadcast(const Tensor&, int, const Stream&) override {}
  void all_gather(const Tensor& in, const Tensor& out, const Stream&) override {
    const Tensor halves = out.reshaped({2, in.numel()});
    for (const std::int64_t rank : {0, 1}) halves.rows(rank, rank + 1).copy_from(in.reshaped({1, in.numel()}));
  }
  void reduce_scatter(const Tensor&, const Tensor&, comm::ReduceOp, const Stream&) override {}
  void barrier(const Stream&) override {}
  std::shared_ptr<comm::Communicator> duplicate(const std::string&) override { return std::make_shared<FirstOfTwo>(); }
  std::shared_ptr<comm::Communicator> split(int, int, const std::string&) override { return nullptr; }
};

GradScaler scaler_of_two(const GradScalerOptions& options = {}) {
  return GradScaler(std::make_shared<FirstOfTwo>(), options);
}

TEST(Skip, NamesALoneRank) {
  GradScaler scaler = scaler_with();
  ScaledModel model;
  EXPECT_EQ(model.train(scaler, false).rank, 0);
}

TEST(Skip, NamesTheRankWhoseOwnGradientWasBad) {
  GradScaler scaler = scaler_of_two();
  ScaledModel model;
  model.backward(scaler, false);
  model.arena->note_reduction(model.optimizer->check_gradients());
  EXPECT_EQ((*scaler.step(*model.optimizer)).rank, 0);
  scaler.update();
  model.optimizer->zero_grad();
  model.backward(scaler, false);
  EXPECT_EQ((*scaler.step(*model.optimizer)).rank, Verdict::kUnknown) << "the flags of an earlier step do not count";
}

/// Skips with this max_consecutive_skips until the scaler gives up.
int skips_until_stop(const GradScalerOptions& options) {
  GradScaler scaler = scaler_with(options);
  ScaledModel model;
  for (int skips = 1; skips <= 30; ++skips) {
    try {
      model.train(scaler, false);
    } catch (const NumericsError&) {
      return skips;
    }
  }
  return 0;
}

TEST(Stop, ComesAfterSoManySkipsInARow) {
  EXPECT_EQ(skips_until_stop({.max_consecutive_skips = 3}), 3);
  EXPECT_EQ(skips_until_stop({.max_consecutive_skips = 1}), 1);
  EXPECT_EQ(skips_until_stop({.dynamic = false, .init = 1, .max_consecutive_skips = 2}), 2);
  EXPECT_EQ(skips_until_stop({}), 20) << "the default";
  EXPECT_EQ(skips_until_stop({.max_consecutive_skips = 0}), 0) << "never";
}

TEST(Stop, AnAppliedStepCountsAnew) {
  GradScaler scaler = scaler_with({.max_consecutive_skips = 3});
  ScaledModel model;
  for (const bool finite : {false, false, true, false, false, true}) model.train(scaler, finite);
  EXPECT_EQ(scaler.consecutive_skips(), 0u);
  EXPECT_EQ(scaler.state_dict().skipped_steps, 4u);
}

TEST(Stop, SkipsOfTwoOptimizersInOneStepCountOnce) {
  GradScaler scaler = scaler_with({.max_consecutive_skips = 3});
  ScaledModel one, two;
  for (int step = 1; step <= 2; ++step) {
    for (ScaledModel* model : {&one, &two}) {
      model->optimizer->zero_grad();
      model->backward(scaler, false);
    }
    const DeviceValue<Verdict> first = scaler.step(*one.optimizer);
    const DeviceValue<Verdict> second = scaler.step(*two.optimizer);
    scaler.update();
    EXPECT_EQ(scaler.consecutive_skips(), static_cast<std::uint32_t>(step));
    for (const auto& verdict : {first, second}) EXPECT_EQ((*verdict).found_inf, 1.0f) << "a verdict is the caller's";
  }
}

TEST(Stop, NamesTheParameterTheRankAndTheScaleAndLeavesTheWeights) {
  GradScaler scaler = scaler_with({.init = 256, .max_consecutive_skips = 1});
  ScaledModel model;
  const auto before = state_of(*model.optimizer);
  model.backward(scaler);
  model.spoil(0, 0, std::numeric_limits<double>::infinity());
  model.arena->note_reduction(model.optimizer->check_gradients());
  scaler.step(*model.optimizer);
  try {
    scaler.update();
    FAIL();
  } catch (const NumericsError& error) {
    EXPECT_THAT(error.what(), HasSubstr("1 steps in a row were skipped: the gradient of dense.weight is not finite"));
    EXPECT_THAT(error.what(), HasSubstr("rank 0"));
    EXPECT_THAT(error.what(), HasSubstr("256"));
    EXPECT_EQ(error.code(), ExitCode::kNumerics);
  }
  EXPECT_EQ(state_of(*model.optimizer), before);
}

TEST(Stop, SaysWhenOnlyTheSumOverRanksWasBad) {
  GradScaler scaler = scaler_of_two({.max_consecutive_skips = 1});
  ScaledModel model;
  model.backward(scaler, false);
  model.arena->note_reduction(Tensor::zeros({4}, DType::kFloat32, device()));
  scaler.step(*model.optimizer);
  EXPECT_THAT([&] { scaler.update(); }, ::testing::ThrowsMessage<NumericsError>(HasSubstr("after the reduction")));
}

TEST(Stop, SaysWhenNobodyLookedAtTheRanksOwnGradients) {
  GradScaler scaler = scaler_of_two({.max_consecutive_skips = 1});
  ScaledModel model;
  model.backward(scaler, false);
  scaler.step(*model.optimizer);
  EXPECT_THAT([&] { scaler.update(); }, ::testing::ThrowsMessage<NumericsError>(HasSubstr("rank first is not known")));
}

TEST(Stop, NamesTheParameterOfTheOptimizerThatWasCheckedFirst) {
  // Whichever of them lies at the lower address.
  ScaledModel one, two;
  for (const bool swapped : {false, true}) {
    ScaledModel& first = swapped ? two : one;
    ScaledModel& second = swapped ? one : two;
    GradScaler scaler = scaler_with({.max_consecutive_skips = 1});
    for (ScaledModel* model : {&second, &first}) {
      model->optimizer->zero_grad();
      model->backward(scaler);
    }
    first.spoil(0, 0, std::numeric_limits<double>::infinity());
    second.spoil(1, 0, std::numeric_limits<double>::infinity());
    scaler.step(*first.optimizer);
    scaler.step(*second.optimizer);
    EXPECT_THAT([&] { scaler.update(); },
                ::testing::ThrowsMessage<NumericsError>(HasSubstr("the gradient of dense.weight")));
  }
}

}  // namespace
}  // namespace lockstep::amp
