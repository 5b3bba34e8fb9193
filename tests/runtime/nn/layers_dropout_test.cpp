// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <thread>

#include "runtime/autograd/engine.h"
#include "runtime/nn/layers.h"
#include "runtime/nn/name_hash.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/ops.h"
#include "runtime/tensor/device_value.h"
#include "tests/runtime/kernels/tensors.h"
#include "tests/support/devices.h"

namespace lockstep::nn {
namespace {

using kernels::testing::values_of;
using lockstep::devices::device;

const Tensor& ones() {
  static const Tensor tensor = Tensor::from(std::vector<float>(12 * 8, 1.0f), {12, 8}).to(device());
  return tensor;
}

/// Two dropouts, named by their paths.
struct DropoutNet {
  explicit DropoutNet(std::uint64_t seed = 1) { initialize(net, seed); }
  Sequential net;
  Dropout& first = net.add<Dropout>("first", 0.5);
  Dropout& second = net.add<Dropout>("second", 0.5);
};

TEST(Dropout, MaskIsThatOfTheGlobalSampleHoweverTheBatchIsSplit) {
  DropoutNet model;
  std::vector<double> whole;
  {
    const StepContext context(3, 7, 100);
    whole = values_of(model.first.forward(ones()));
  }
  for (const std::int64_t split : {0, 5, 12}) {
    std::vector<double> parts;
    for (const auto& [begin, end] : {std::pair{std::int64_t{0}, split}, std::pair{split, std::int64_t{12}}}) {
      const StepContext context(3, 7, 100 + begin);
      const std::vector<double> part = values_of(model.first.forward(ones().rows(begin, end)));
      parts.insert(parts.end(), part.begin(), part.end());
    }
    EXPECT_EQ(parts, whole) << "split at " << split;
  }
}

TEST(Dropout, ReadsThePlaceInTheRunWhenItRuns) {
  DropoutNet model;
  const DeviceValue<kernels::StepPosition> position({}, device());
  const auto masks = [&](std::int64_t first_sample) {
    position.write({7, first_sample});
    const StepContext context(position.data());
    return values_of(model.first.forward(ones()));
  };
  const auto named = [&](std::int64_t first_sample) {
    const StepContext context(7, first_sample);
    return values_of(model.first.forward(ones()));
  };
  EXPECT_EQ(masks(100), named(100));
  EXPECT_EQ(masks(5), named(5));
  EXPECT_NE(masks(5), named(100));
}

TEST(Dropout, LayersStepsAndSeedsHaveMasksOfTheirOwn) {
  DropoutNet model;
  const auto mask = [](Dropout& dropout, std::uint64_t seed, std::uint64_t step) {
    const StepContext context(seed, step, 0);
    return values_of(dropout.forward(ones()));
  };
  EXPECT_EQ(mask(model.first, 1, 1), mask(model.first, 1, 1));
  EXPECT_NE(mask(model.first, 1, 1), mask(model.second, 1, 1));
  EXPECT_NE(mask(model.first, 1, 1), mask(model.first, 1, 2));
  EXPECT_NE(mask(model.first, 1, 1), mask(model.first, 2, 1));
  DropoutNet again;
  EXPECT_EQ(mask(model.second, 1, 1), mask(again.second, 1, 1)) << "the path names the mask";
}

TEST(Dropout, CallsOfOneLayerInAContextHaveMasksOfTheirOwn) {
  DropoutNet model;
  const auto masks = [&model] {
    const StepContext context(1, 2, 0);
    std::vector<std::vector<double>> all;
    for (int call = 0; call < 3; ++call) all.push_back(values_of(model.first.forward(ones())));
    return all;
  };
  const auto calls = masks();
  EXPECT_NE(calls[0], calls[1]);
  EXPECT_NE(calls[1], calls[2]);
  EXPECT_NE(calls[0], calls[2]);
  EXPECT_EQ(masks(), calls) << "the context names them";
  const kernels::DropoutKey first{.seed = 1, .step = 2, .layer = name_hash("first")};
  EXPECT_EQ(values_of(ops::dropout(ones(), 0.5, first, 0)), calls[0]);
}

TEST(Dropout, CallsWithoutAContextHaveMasksOfTheirOwn) {
  DropoutNet model(3), same(3), other(4);
  std::vector<double> before;
  for (int call = 0; call < 3; ++call) {
    const std::vector<double> mask = values_of(model.first.forward(ones()));
    EXPECT_NE(mask, before);
    EXPECT_EQ(values_of(same.first.forward(ones())), mask) << "call " << call;
    EXPECT_NE(values_of(other.first.forward(ones())), mask) << "the seed names them";
    EXPECT_NE(values_of(model.second.forward(ones())), mask) << "and the path";
    before = mask;
  }
  initialize(model.net, 3);
  initialize(same.net, 3);
  EXPECT_EQ(values_of(model.first.forward(ones())), values_of(same.first.forward(ones())));
}

TEST(Dropout, WithoutAContextTheMaskIsThatOfTheGlobalSampleToo) {
  DropoutNet truth, split;
  for (int call = 0; call < 2; ++call) {
    const std::vector<double> whole = values_of(truth.first.forward(ones()));
    const FirstSample place(7);
    EXPECT_EQ(values_of(split.first.forward(ones().rows(7, 12))),
              std::vector<double>(whole.begin() + 7 * 8, whole.end()));
  }
}

TEST(Dropout, BackwardMeetsTheMaskOfItsForward) {
  DropoutNet model;
  const Tensor x = ones().detach();
  x.set_requires_grad(true);
  const Tensor once = model.first.forward(x), twice = model.first.forward(x);
  EXPECT_EQ(values_of(autograd::grad(once, {x}, ones()).front()), values_of(once));
  EXPECT_EQ(values_of(autograd::grad(twice, {x}, ones()).front()), values_of(twice));
}

TEST(Dropout, DoesNothingInEvaluation) {
  DropoutNet model, never;
  EXPECT_TRUE(model.first.draws_random_numbers());
  model.net.train(false);
  EXPECT_TRUE(model.net.forward(ones()).is(ones()));
  EXPECT_FALSE(model.first.draws_random_numbers());
  model.net.train();
  EXPECT_EQ(values_of(model.net.forward(ones())), values_of(never.net.forward(ones()))) << "nor does it count";
}

TEST(FirstSample, LeavesTheContextAsItWas) {
  const StepContext context(1, 2, 3);
  {
    const FirstSample inner(9);
    EXPECT_EQ(StepContext::current().first_sample, 9);
    EXPECT_EQ(StepContext::current().step, 2u);
  }
  EXPECT_EQ(StepContext::current().first_sample, 3);
}

TEST(StepContext, NestsAndBelongsToItsThread) {
  const StepContext outer(1, 2, 3);
  {
    const StepContext inner(4, 5, 6);
    EXPECT_EQ(StepContext::current().first_sample, 6);
    std::thread([] { EXPECT_EQ(StepContext::current().step, 0u); }).join();
  }
  EXPECT_EQ(StepContext::current().seed, 1u);
  EXPECT_EQ(StepContext::current().step, 2u);
  EXPECT_EQ(StepContext::current().first_sample, 3);
}

}  // namespace
}  // namespace lockstep::nn
