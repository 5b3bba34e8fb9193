// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/nn/arena.h"
#include "runtime/nn/layers.h"
#include "runtime/nn/state_dict.h"
#include "runtime/ops/ops.h"
#include "runtime/tensor/device_value.h"
#include "tests/runtime/kernels/tensors.h"
#include "tests/support/devices.h"

namespace lockstep::nn {
namespace {

using kernels::testing::expect_close;
using kernels::testing::random_tensor;
using kernels::testing::values_of;
using lockstep::devices::device;
using ::testing::ElementsAre;

/// A batch norm on one channel, whose statistics can be followed by hand.
class RunningStatisticsTest : public ::testing::Test {
 protected:
  RunningStatisticsTest() {
    initialize(norm_, 1);
    arena_.emplace(norm_, ArenaOptions{.device = device()});
  }

  /// A micro-batch with this mean and an unbiased variance of 2.
  Tensor forward(float mean) { return norm_.forward(Tensor::from<float>({mean - 1, mean + 1}, {2, 1}).to(device())); }
  void commit(float found_inf) { statistics().commit(DeviceValue(found_inf, device()).data()); }
  RunningStatistics& statistics() { return *norm_.statistics().front().second; }
  std::vector<double> committed() { return values_of(statistics().committed()); }

  BatchNorm norm_{1};
  std::optional<Arena> arena_;
};

TEST_F(RunningStatisticsTest, WaitForTheVerdict) {
  forward(10);
  EXPECT_THAT(committed(), ElementsAre(0, 1));
  EXPECT_NEAR(statistics().latest().item(0), 1, 1e-6);
  commit(0);
  EXPECT_NEAR(committed()[0], 1, 1e-6);
  EXPECT_NEAR(committed()[1], 0.9 + 0.1 * 2, 1e-6);
}

/// As PyTorch's layer in eval() within a model in train().
TEST_F(RunningStatisticsTest, ThatAreFrozenNormaliseInTrainingAndStay) {
  forward(10);
  commit(0);
  const std::vector<double> before = committed();
  norm_.freeze_statistics();
  Tensor x = Tensor::from<float>({3, 5}, {2, 1}).to(device());
  x.set_requires_grad(true);
  const Tensor y = norm_.forward(x);
  ops::sum(y).backward();
  commit(0);
  EXPECT_EQ(committed(), before);
  const double inv_std = 1 / std::sqrt(before[1] + 1e-5);
  EXPECT_NEAR(values_of(y)[0], (3 - before[0]) * inv_std, 1e-5);
  // The statistics do not depend on the sample.
  EXPECT_NEAR(values_of(x.grad())[1], inv_std, 1e-5);
  EXPECT_NO_THROW(norm_.forward(Tensor::from<float>({3}, {1, 1}).to(device()))) << "one value a channel suffices";
}

TEST_F(RunningStatisticsTest, AreForgottenWithASkippedStep) {
  forward(std::numeric_limits<float>::infinity());
  commit(1);
  EXPECT_THAT(committed(), ElementsAre(0, 1));
  forward(10);
  commit(0);
  EXPECT_NEAR(committed()[0], 1, 1e-6) << "nothing of the skipped batch is left";
}

TEST_F(RunningStatisticsTest, ThatAreLoadedReplaceThePendingOnes) {
  const auto load = [this] {
    StateDict state = state_dict(norm_);
    state.at("running") = Tensor::from<float>({50, 3}, {2, 1}).to(device());
    load_state_dict(norm_, state);
  };
  forward(10);
  load();
  forward(10);
  commit(0);
  EXPECT_NEAR(committed()[0], 0.9 * 50 + 0.1 * 10, 1e-5);
  forward(10);
  load();
  commit(0);
  EXPECT_THAT(committed(), ElementsAre(50, 3));
}

TEST_F(RunningStatisticsTest, OfAnAccumulationCycleBuildOnEachOther) {
  forward(10);
  forward(20);
  EXPECT_THAT(committed(), ElementsAre(0, 1));
  commit(0);
  EXPECT_NEAR(committed()[0], 0.9 * 1 + 0.1 * 20, 1e-6);
  EXPECT_NEAR(committed()[1], 0.9 * 1.1 + 0.1 * 2, 1e-6);
}

TEST_F(RunningStatisticsTest, OfAWholeCycleAreForgottenTogether) {
  forward(10);
  commit(0);
  const std::vector<double> before = committed();
  forward(20);
  forward(30);
  commit(1);
  EXPECT_EQ(committed(), before);
  EXPECT_EQ(values_of(statistics().latest()), before);
}

TEST_F(RunningStatisticsTest, OfOneValueAChannelAreRefused) {
  const Tensor one = Tensor::from<float>({3}, {1, 1}).to(device());
  EXPECT_THAT([&] { norm_.forward(one); },
              ::testing::ThrowsMessage<ShapeError>(::testing::HasSubstr("needs more than one value a channel")));
  norm_.train(false);
  EXPECT_NO_THROW(norm_.forward(one));
}

TEST_F(RunningStatisticsTest, CommitWithoutAForwardChangesNothing) {
  commit(0);
  EXPECT_THAT(committed(), ElementsAre(0, 1));
}

TEST_F(RunningStatisticsTest, OfARejectedVerdictAnyNonZeroCounts) {
  forward(10);
  commit(std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(committed(), ElementsAre(0, 1));
}

TEST_F(RunningStatisticsTest, AreWhatEvaluationUsesAndLeavesAlone) {
  forward(10);
  commit(0);
  norm_.train(false);
  const std::vector<double> before = committed();
  const Tensor y = forward(5);
  EXPECT_NEAR(y.item(0), (4 - before[0]) / std::sqrt(before[1] + 1e-5), 1e-5);
  commit(0);
  EXPECT_EQ(committed(), before);
}

TEST_F(RunningStatisticsTest, PendingOnesAreNotWhatEvaluationUses) {
  forward(10);
  norm_.train(false);
  EXPECT_NEAR(forward(5).item(0), 4, 1e-4);
}

TEST_F(RunningStatisticsTest, AreCommittedByTheModuleWithoutAStep) {
  forward(10);
  norm_.commit_statistics();
  EXPECT_NEAR(committed()[0], 1, 1e-6);
  norm_.commit_statistics();
  EXPECT_NEAR(committed()[0], 1, 1e-6) << "nothing was pending";
  forward(10);
  arena_->commit_statistics();
  EXPECT_NEAR(committed()[0], 1.9, 1e-6);
}

TEST_F(RunningStatisticsTest, AreCommittedByTheArena) {
  forward(10);
  const DeviceValue<float> found_inf(0.0f, device());
  arena_->commit_statistics(found_inf.data());
  EXPECT_NEAR(committed()[0], 1, 1e-6);
}

TEST(BatchNorm, FusesResidualAndRelu) {
  BatchNorm plain(3), fused(3, {.relu = true});
  initialize(plain, 1);
  initialize(fused, 1);
  const Arena plain_arena(plain, {.device = device()}), fused_arena(fused, {.device = device()});
  const Tensor x = random_tensor({6, 3}, DType::kFloat32, 1).to(device());
  const Tensor residual = random_tensor({6, 3}, DType::kFloat32, 2).to(device());
  std::vector<double> expected = values_of(plain.forward(x));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = std::max(0.0, expected[i] + residual.item(static_cast<std::int64_t>(i)));
  }
  expect_close(fused.forward(x, residual), expected, {.absolute = 1e-6});
}

TEST(BatchNorm, TakesItsMomentumAndEpsilon) {
  BatchNorm norm(1, {.momentum = 0.5, .epsilon = 3});
  initialize(norm, 1);
  const Arena arena(norm, {.device = device()});
  // Mean 4, biased variance 1.
  const Tensor y = norm.forward(Tensor::from<float>({3, 5}, {2, 1}).to(device()));
  expect_close(y, std::vector<double>{-0.5, 0.5}, {.absolute = 1e-6});
  norm.commit_statistics();
  EXPECT_THAT(values_of(norm.statistics().front().second->committed()), ElementsAre(2, 1.5));
}

TEST(BatchNorm, LearnsNothingWhereItIsNotAffine) {
  BatchNorm norm(3, {.relu = true, .affine = false});
  EXPECT_TRUE(norm.parameters().empty());
  BatchNorm affine(3, {.relu = true});
  initialize(affine, 1);
  const Arena arena(affine, {.device = device()});
  for (const auto& [name, statistics] : norm.statistics()) statistics->move_to(device());
  const Tensor x = random_tensor({6, 3}, DType::kFloat32, 1).to(device());
  expect_close(norm.forward(x), values_of(affine.forward(x)), {});
  x.set_requires_grad(true);
  ops::sum(norm.forward(x)).backward();
  EXPECT_TRUE(x.grad().defined());
}

TEST(BatchNorm, RefusesWhatCannotNormalise) {
  EXPECT_THROW(BatchNorm(3, {.momentum = 1.5}), FieldError);
  EXPECT_THROW(BatchNorm(3, {.epsilon = 0}), FieldError);
}

TEST(BatchNorm, StartsWithTheGammaItIsGiven) {
  BatchNorm norm(2, {.initial_gamma = 0});
  initialize(norm, 1);
  const Arena arena(norm, {.device = device()});
  EXPECT_THAT(values_of(norm.forward(random_tensor({4, 2}, DType::kFloat32, 1).to(device()))), ::testing::Each(0));
}

}  // namespace
}  // namespace lockstep::nn
