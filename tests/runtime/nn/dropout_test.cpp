// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <thread>

#include "runtime/nn/layers.h"
#include "runtime/nn/step_context.h"
#include "tests/runtime/kernels/kernel_fixture.h"

namespace lockstep::nn {
namespace {

using kernels::testing::values_of;
using lockstep::devices::device;

const Tensor& ones() {
  static const Tensor tensor = Tensor::from(std::vector<float>(12 * 8, 1.0f), {12, 8}).to(device());
  return tensor;
}

/// Two dropouts, named by their paths.
struct Net {
  Net() { name_layers(net); }
  Sequential net;
  Dropout& first = net.add<Dropout>("first", 0.5);
  Dropout& second = net.add<Dropout>("second", 0.5);
};

TEST(Dropout, MaskIsThatOfTheGlobalSampleHoweverTheBatchIsSplit) {
  Net model;
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
  Net model;
  const DeviceValue<kernels::StepPosition> position({}, device());
  const auto masks = [&](std::int64_t first_sample) {
    position.write({7, first_sample});
    const StepContext context(3, position.data());
    return values_of(model.first.forward(ones()));
  };
  const auto named = [&](std::int64_t first_sample) {
    const StepContext context(3, 7, first_sample);
    return values_of(model.first.forward(ones()));
  };
  EXPECT_EQ(masks(100), named(100));
  EXPECT_EQ(masks(5), named(5));
  EXPECT_NE(masks(5), named(100));
}

TEST(Dropout, LayersStepsAndSeedsHaveMasksOfTheirOwn) {
  Net model;
  const auto mask = [](Dropout& dropout, std::uint64_t seed, std::uint64_t step) {
    const StepContext context(seed, step, 0);
    return values_of(dropout.forward(ones()));
  };
  EXPECT_EQ(mask(model.first, 1, 1), mask(model.first, 1, 1));
  EXPECT_NE(mask(model.first, 1, 1), mask(model.second, 1, 1));
  EXPECT_NE(mask(model.first, 1, 1), mask(model.first, 1, 2));
  EXPECT_NE(mask(model.first, 1, 1), mask(model.first, 2, 1));
  Net again;
  EXPECT_EQ(mask(model.second, 1, 1), mask(again.second, 1, 1)) << "the path names the mask";
}

TEST(Dropout, DoesNothingInEvaluation) {
  Net model;
  model.net.train(false);
  EXPECT_TRUE(model.net.forward(ones()).is(ones()));
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
