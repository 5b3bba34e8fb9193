// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/synthetic.h"

#include <gmock/gmock.h>

#include <map>

#include "runtime/base/counter_rng.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

TEST(Synthetic, ClassesCanBeToldApart) {
  const SyntheticDataset set({.samples = 500, .shape = {64}, .classes = 4});
  std::map<std::int64_t, std::vector<float>> first;
  std::map<std::int64_t, int> count;
  for (std::int64_t i = 0; i < set.size(); ++i) {
    const std::vector<float> values = sample(set, {.index = i});
    for (const float value : values) ASSERT_TRUE(value >= 0 && value < 1);
    ++count[label(set, i)];
  }
  EXPECT_EQ(count.size(), 4u);
  const auto distance = [&](std::int64_t i, std::int64_t k) {
    const std::vector<float> a = sample(set, {.index = i});
    const std::vector<float> b = sample(set, {.index = k});
    float sum = 0;
    for (std::size_t at = 0; at < a.size(); ++at) sum += (a[at] - b[at]) * (a[at] - b[at]);
    return sum;
  };
  double same = 0, other = 0;
  int sames = 0, others = 0;
  for (std::int64_t i = 0; i < 50; ++i) {
    for (std::int64_t k = 0; k < i; ++k) {
      (label(set, i) == label(set, k) ? same : other) += distance(i, k);
      ++(label(set, i) == label(set, k) ? sames : others);
    }
  }
  EXPECT_LT(1.5 * same / sames, other / others);
}

TEST(Synthetic, NumbersDoNotDependOnTheThreadsThatDrawThem) {
  // Enough for several threads, and no multiple of what they share.
  const std::int64_t size = (3 << 20) + 7;
  const SyntheticDataset set({.samples = 3, .shape = {size}, .classes = 1});
  const CounterRng patterns(0, CounterRng::Purpose::kSynthetic, 0);
  const CounterRng noise(0, CounterRng::Purpose::kSynthetic, 1);
  const CounterRng samples(0, CounterRng::Purpose::kSynthetic, 2);
  const std::vector<float> values = sample(set, {.index = 2});
  const std::uint64_t offset = samples.block(2)[1] % 65536;
  std::int64_t wrong = 0;
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0.5f * patterns.uniform(i) + 0.5f * noise.uniform(offset + i)) ++wrong;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Synthetic, RegressionTargetsAreAFunctionOfTheSample) {
  const SyntheticDataset set({.samples = 10, .shape = {6}, .target_size = 3});
  EXPECT_EQ(set.target_shape(), (Shape{3}));
  std::vector<float> input(6);
  std::vector<float> answer(3);
  set.get({.index = 4}, {.values = input, .target = answer});
  for (std::size_t t = 0; t < 3; ++t) EXPECT_EQ(answer[t], input[t] - input[t + 3]);
}

TEST(Synthetic, TestSamplesAreOthersThanTrainingSamples) {
  const SyntheticDataset train({.samples = 10, .shape = {6}, .classes = 2});
  const SyntheticDataset test({.samples = 10, .shape = {6}, .classes = 2, .first_sample = 1 << 20});
  EXPECT_NE(sample(train, {}), sample(test, {}));
  EXPECT_EQ(sample(train, {.seed = 1}), sample(train, {.seed = 2}));
}

}  // namespace
}  // namespace lockstep::data
