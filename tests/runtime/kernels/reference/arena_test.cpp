// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/arena.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/error.h"
#include "tests/runtime/kernels/tables.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::kernels {
namespace {

using testing::expect_close;
using testing::reference_of;
using testing::tensor_of;
using testing::values_of;

constexpr DType k32 = DType::kFloat32;
constexpr testing::Bounds kBounds{.relative = 1e-6, .absolute = 1e-9};

TEST(ReferenceCheckFinite, FlagsTheSegmentsThatOverflowed) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor grad = tensor_of({1, 2, infinity, 3, NAN, 4}, {6}, DType::kFloat16);
  const std::vector<ArenaSegment> segments = {{100, 102}, {102, 104}, {104, 105}, {105, 106}, {106, 106}};
  const Tensor flags = Tensor::empty({5}, k32);
  const Tensor squares = Tensor::empty({5}, DType::kFloat64);
  reference_of<ArenaSteps>().check_finite(grad, 100, segments, flags, squares);
  EXPECT_EQ(values_of(flags), (std::vector<double>{0, 1, 1, 0, 0}));
  EXPECT_EQ(squares.item(0), 5);
  EXPECT_EQ(squares.item(3), 16);
  EXPECT_EQ(squares.item(4), 0);
  reference_of<ArenaSteps>().check_finite(grad, 100, segments, flags, {});
  EXPECT_THROW(reference_of<ArenaSteps>().check_finite(grad, 101, segments, flags, {}), ShapeError);
  EXPECT_THROW(reference_of<ArenaSteps>().check_finite(grad, 99, segments, flags, {}), ShapeError);
}

/// Two weights, one segment, and what a step reads.
class ReferenceOptimizer : public ::testing::Test {
 protected:
  void use(std::vector<double> grads, DType dtype = k32) { slice_.grad = tensor_of(grads, {2}, dtype); }

  StepScalars scalars() const {
    return {.inverse_scale = &inverse_scale_,
            .clip = clip_ > 0 ? &clip_ : nullptr,
            .found_inf = &found_inf_,
            .learning_rate = &learning_rate_,
            .steps = &step_,
            .clip_value = clip_value_};
  }
  void sgd(const SgdRule& options) {
    reference_of<ArenaSteps>().element_step(slice_, options, scalars(),
                                            options.momentum != 0 ? std::vector{state_} : std::vector<Tensor>());
    ++step_;
  }
  void adam(const AdamRule& options) {
    reference_of<ArenaSteps>().element_step(slice_, options, scalars(), {state_, second_state_});
    ++step_;
  }
  void expect_weights(double first, double second) { expect_close(slice_.master, {first, second}, kBounds); }

  std::vector<ArenaSegment> segments_ = {{10, 12, 1.0f, 0.0f}};
  ArenaSlice slice_{.master = tensor_of({1, -2}, {2}, k32), .base = 10, .segments = segments_};
  Tensor state_ = Tensor::zeros({2}, k32);
  Tensor second_state_ = Tensor::zeros({2}, k32);
  float inverse_scale_ = 1;
  float clip_ = 0;
  float found_inf_ = 0;
  float learning_rate_ = 0.1f;
  std::int64_t step_ = 0;
  float clip_value_ = 0;
};

TEST_F(ReferenceOptimizer, SgdFollowsTheGradient) {
  use({0.5, -1});
  sgd({});
  expect_weights(0.95, -1.9);
}

TEST_F(ReferenceOptimizer, SgdUnscalesAndClips) {
  use({512, -1024});
  inverse_scale_ = 1.0f / 1024;
  clip_ = 0.5f;
  sgd({});
  expect_weights(0.975, -1.95);
  clip_value_ = 0.25f;
  sgd({});
  expect_weights(0.95, -1.925);
}

TEST_F(ReferenceOptimizer, WeightDecayIsAddedBehindTheClipping) {
  segments_[0].weight_decay = 0.5f;
  clip_value_ = 0.25f;
  use({8, 8});
  sgd({});
  expect_weights(1 - 0.1 * (0.25 + 0.5), -2 - 0.1 * (0.25 - 1));
}

TEST_F(ReferenceOptimizer, MomentumStartsFromTheFirstGradientWithoutDampening) {
  const SgdRule options{.momentum = 0.9f, .dampening = 0.5f};
  use({1, 2});
  sgd(options);
  expect_weights(0.9, -2.2);
  expect_close(state_, {1, 2}, kBounds);
  use({3, -1});
  sgd(options);  // buffer: 0.9 * 1 + 0.5 * 3 = 2.4, 0.9 * 2 - 0.5 = 1.3
  expect_close(state_, {2.4, 1.3}, kBounds);
  expect_weights(0.66, -2.33);
}

TEST_F(ReferenceOptimizer, NesterovLooksAhead) {
  const SgdRule options{.momentum = 0.5f, .nesterov = true};
  use({1, 2});
  sgd(options);  // 1 + 0.5 * 1, 2 + 0.5 * 2
  expect_weights(0.85, -2.3);
  sgd(options);  // buffer 1.5, 3; direction 1 + 0.75, 2 + 1.5
  expect_weights(0.675, -2.65);
}

TEST_F(ReferenceOptimizer, AdamsFirstStepIsTheSignOfTheGradient) {
  use({1, -40});
  adam({});
  expect_weights(0.9, -1.9);
  use({1, 40});
  // m / correction: 0.19 / 0.19, (0.1 * 40 - 0.9 * 4) / 0.19; v does not see the sign.
  adam({});
  expect_close(slice_.master, {0.8, -1.9 - 0.1 * (0.4 / 0.19) / 40}, {.absolute = 1e-5});
}

TEST_F(ReferenceOptimizer, AdamsMomentsAreThoseOfDoubleBetas) {
  use({1, 3});
  adam({});
  EXPECT_NEAR(state_.item(0), 0.1, 1e-8);
  EXPECT_NEAR(second_state_.item(1), 0.009, 1e-9) << "1 - 0.999f is 5e-5 of it more";
}

TEST_F(ReferenceOptimizer, AdamAddsTheDecayToTheGradientAndAdamWTakesItFromTheWeight) {
  segments_[0].weight_decay = 0.1f;
  use({0, 0});
  adam({.decoupled = true});
  expect_weights(1 - 0.01, -2 + 0.02);
  EXPECT_EQ(values_of(state_), (std::vector<double>{0, 0}));
  step_ = 0;
  adam({});
  expect_close(slice_.master, {0.99 - 0.1, -1.98 + 0.1}, {.absolute = 1e-6});
}

TEST_F(ReferenceOptimizer, SegmentsHaveTheirOwnRateAndDecayAndGapsStay) {
  slice_.copy = tensor_of({7, 7}, {2}, DType::kFloat16);
  segments_ = {{11, 12, 2.0f, 0.5f}};
  slice_.segments = segments_;
  use({1, 1});
  sgd({});
  expect_weights(1, -2 - 0.2 * (1 - 1));
  expect_close(slice_.copy, {7, -2}, {});
}

TEST_F(ReferenceOptimizer, TheCopyIsTheRoundedMaster) {
  slice_.copy = Tensor::empty({2}, DType::kBFloat16);
  use({0.333, 0.777}, DType::kFloat16);
  sgd({});
  const Tensor expected = tensor_of(values_of(slice_.master), {2}, DType::kBFloat16);
  EXPECT_EQ(values_of(slice_.copy), values_of(expected));
}

TEST_F(ReferenceOptimizer, WithoutMasterWeightsTheMasterIsRounded) {
  slice_.master_precision = DType::kFloat16;
  use({1e-4, 1});
  sgd({});  // 1 - 1e-5 is nearest to 1 among the halves
  expect_close(slice_.master, {1, values_of(tensor_of({-2.1}, {1}, DType::kFloat16))[0]}, {});
}

TEST_F(ReferenceOptimizer, NothingChangesWhenAnInfinityWasFound) {
  slice_.copy = tensor_of({3, 4}, {2}, DType::kFloat16);
  use({std::numeric_limits<double>::infinity(), 1});
  found_inf_ = 1;
  sgd({.momentum = 0.9f});
  adam({});
  EXPECT_EQ(values_of(slice_.master), (std::vector<double>{1, -2}));
  EXPECT_EQ(values_of(slice_.copy), (std::vector<double>{3, 4}));
  EXPECT_EQ(values_of(state_), (std::vector<double>{0, 0}));
  EXPECT_EQ(values_of(second_state_), (std::vector<double>{0, 0}));
}

TEST_F(ReferenceOptimizer, WhatDoesNotFitIsRefused) {
  use({1, 1});
  state_ = Tensor::zeros({3}, k32);
  EXPECT_THROW(sgd({.momentum = 0.9f}), ShapeError);
  EXPECT_THROW(adam({}), ShapeError);
  EXPECT_NO_THROW(sgd({}));
  segments_[0].end = 13;
  EXPECT_THROW(sgd({}), ShapeError);
  segments_[0].end = 12;
  slice_.grad = Tensor::zeros({3}, k32);
  EXPECT_THROW(sgd({}), ShapeError);
}

}  // namespace
}  // namespace lockstep::kernels
