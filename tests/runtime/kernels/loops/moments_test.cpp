// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/functors/moments.h"

#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

/// Mean and m2 in two passes.
Moments<double> exact(const std::vector<double>& values) {
  Moments<double> moments;
  for (const double value : values) moments.mean += value / static_cast<double>(values.size());
  for (const double value : values) moments.m2 += (value - moments.mean) * (value - moments.mean);
  return moments;
}

TEST(MomentsFunctor, JoinsGroupsOfAnySizes) {
  const std::vector<double> values = testing::values_of(testing::random_tensor({1000}, DType::kFloat32, 1, 999, 1001));
  Moments<float> all;
  float count = 0;
  for (std::size_t begin = 0, size = 0; begin < values.size(); begin += size, ++size) {
    size = std::min(size, values.size() - begin);
    Moments<float> group;
    for (std::size_t i = 0; i < size; ++i) {
      group.add(static_cast<float>(i), {static_cast<float>(values[begin + i]), 0.0f}, 1.0f);
    }
    all.add(count, group, static_cast<float>(size));
    count += static_cast<float>(size);
  }
  const Moments<double> expected = exact(values);
  EXPECT_EQ(count, 1000.0f);
  EXPECT_NEAR(static_cast<double>(all.mean), expected.mean, 1e-3);
  EXPECT_NEAR(static_cast<double>(all.m2), expected.m2, 1e-3 * expected.m2);
}

TEST(MomentsFunctor, OfValuesAtHandAreExact) {
  const float values[4] = {1001, 1002, 1003, 1006};
  const Moments<float> moments = moments_of(values);
  EXPECT_EQ(moments.mean, 1003.0f);
  EXPECT_EQ(moments.m2, 14.0f);
}

TEST(MomentsFunctor, OfNothingChangeNothing) {
  Moments<float> moments;
  moments.add(0, {}, 0);
  EXPECT_EQ(moments.mean, 0.0f);
  EXPECT_EQ(moments.m2, 0.0f);
  moments.add(0, {2.5f, 1.5f}, 3);
  moments.add(3, {}, 0);
  EXPECT_EQ(moments.mean, 2.5f);
  EXPECT_EQ(moments.m2, 1.5f);
}

}  // namespace
}  // namespace lockstep::kernels
