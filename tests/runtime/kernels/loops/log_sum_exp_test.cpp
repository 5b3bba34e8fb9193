// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/functors/log_sum_exp.h"

#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

Exponentials of(const std::vector<double>& logits) {
  Exponentials row;
  for (const double logit : logits) {
    row.raise(static_cast<float>(logit));
    row.add(static_cast<float>(logit));
  }
  return row;
}

TEST(ExponentialsFunctor, KeepMaximumSumAndDistancesInOnePass) {
  for (const double offset : {0.0, -300.0, 10000.0}) {
    const std::vector<double> logits =
        testing::values_of(testing::random_tensor({500}, DType::kFloat32, 1, offset - 9, offset + 9));
    const double max = *std::ranges::max_element(logits);
    double sum = 0, distance = 0;
    for (const double logit : logits) {
      sum += std::exp(logit - max);
      distance += max - logit;
    }
    const Exponentials row = of(logits);
    EXPECT_EQ(static_cast<double>(row.max), max);
    EXPECT_NEAR(static_cast<double>(row.sum), sum, 1e-5 * sum);
    EXPECT_NEAR(static_cast<double>(row.distance), distance, 1e-5 * distance);
    EXPECT_EQ(row.count, 500.0f);
  }
}

TEST(ExponentialsFunctor, PartsAgreeOnAMaximum) {
  const std::vector<double> logits = testing::values_of(testing::random_tensor({64}, DType::kFloat32, 2, -4, 4));
  const Exponentials whole = of(logits);
  Exponentials first = of({logits.begin(), logits.begin() + 20});
  Exponentials second = of({logits.begin() + 20, logits.end()});
  Exponentials none;
  for (Exponentials* part : {&first, &second, &none}) part->raise(whole.max);
  EXPECT_NEAR(first.sum + second.sum + none.sum, whole.sum, 1e-5f * whole.sum);
  EXPECT_NEAR(first.distance + second.distance + none.distance, whole.distance, 1e-5f * whole.distance);
}

TEST(ExponentialsFunctor, TakeLogitsThatAreNotFinite) {
  EXPECT_EQ(of({-INFINITY, 0, -INFINITY}).sum, 1.0f);
  EXPECT_EQ(of({-INFINITY, 0}).distance, INFINITY);
  EXPECT_TRUE(std::isnan(of({1, NAN, 2}).sum));
}

TEST(CrossEntropyFunctor, SmoothsTheTarget) {
  // Logits 0, 1, 3 and target 1: the maximum is 3, distances 3, 2, 0.
  const double log_sum = std::log(std::exp(-3.0) + std::exp(-2.0) + 1);
  const auto loss = [&](float smoothing) {
    return static_cast<double>(cross_entropy(2, 5, 3, static_cast<float>(log_sum), smoothing));
  };
  EXPECT_NEAR(loss(0), 2 + log_sum, 1e-6);
  EXPECT_NEAR(loss(0.3f), 0.7 * (2 + log_sum) + 0.1 * (5 + 3 * log_sum), 1e-6);
}

TEST(CrossEntropyFunctor, WithoutSmoothingOtherClassesMayBeImpossible) {
  EXPECT_EQ(cross_entropy(2, INFINITY, 3, 0.5f, 0), 2.5f);
}

}  // namespace
}  // namespace lockstep::kernels
