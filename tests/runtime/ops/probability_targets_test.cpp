// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/probability_targets.h"

#include <gmock/gmock.h>

#include "amp/autocast/autocast.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

class ProbabilityTargetsTest : public ops::testing::OperationTest {};
INSTANTIATE_TEST_SUITE_P(On, ProbabilityTargetsTest, ops::testing::kAllTypes, ops::testing::name_of_on);

TEST_P(ProbabilityTargetsTest, HaveGradientsAsTheLogitsHave) {
  const Tensor logits = random({5, 4}, 1, -2, 2), targets = random({5, 4}, 2, 0, 1);
  check([](const auto& in) { return cross_entropy(in[0], in[1]); }, {logits, targets}, {.terms = 20, .magnitude = 3});
  const Tensor weight = random_wide({4}, 3, 0.5, 1.5), samples = random_wide({5}, 4, 0.5, 1.5);
  check(
      [&](const auto& in) {
        return cross_entropy(
            in[0], in[1],
            {.label_smoothing = 0.2, .weight = weight.to(in[0].device()), .sample_weight = samples.to(in[0].device())});
      },
      {logits, targets}, {.terms = 20, .magnitude = 5});
}

TEST(ProbabilityTargets, OfCertaintyAreTheClassesLoss) {
  const Tensor logits = kernels::testing::random_tensor({2, 3, 4}, DType::kFloat64, 1);
  const Tensor classes = Tensor::from<std::int64_t>({0, 3, 1, 2, 2, 0}, {2, 3});
  const Tensor certain = one_hot(classes, 4, DType::kFloat64);
  for (const LossOptions& options : {LossOptions{}, LossOptions{.label_smoothing = 0.3}, LossOptions{.divisor = 9}}) {
    EXPECT_NEAR(cross_entropy(logits, certain, options).item(), cross_entropy(logits, classes, options).item(), 1e-12);
  }
  const LossOptions weighted{.sample_weight = kernels::testing::random_tensor({2, 3}, DType::kFloat64, 2, 0, 1)};
  EXPECT_NEAR(cross_entropy(logits, certain, weighted).item(), cross_entropy(logits, classes, weighted).item(), 1e-12);
  EXPECT_EQ(cross_entropy(Tensor::zeros({0, 4}, DType::kFloat32), Tensor::zeros({0, 4}, DType::kFloat32)).item(), 0);
}

TEST(ProbabilityTargets, AreComputedInFloat32) {
  const Tensor logits = Tensor::zeros({2, 4}, DType::kBFloat16), targets = full({2, 4}, 0.25);
  const amp::Autocast autocast(DType::kBFloat16);
  const Tensor loss = cross_entropy(logits, targets);
  EXPECT_EQ(loss.dtype(), DType::kFloat32);
  EXPECT_FLOAT_EQ(static_cast<float>(loss.item()), 1.3862944f);
}

TEST(ProbabilityTargets, RefuseWhatIsOfClasses) {
  const Tensor logits = Tensor::zeros({2, 4}, DType::kFloat32), targets = Tensor::zeros({2, 4}, DType::kFloat32);
  EXPECT_THROW(static_cast<void>(cross_entropy(logits, targets, {.ignore_index = 0})), UsageError);
  EXPECT_THROW(static_cast<void>(cross_entropy(logits, targets, {.label_smoothing = 1.5})), UsageError);
  EXPECT_THROW(static_cast<void>(cross_entropy(logits, Tensor::zeros({2}, DType::kFloat32))), ShapeError);
  EXPECT_THROW(static_cast<void>(cross_entropy(logits, targets, {.weight = ones({2})})), ShapeError);
  EXPECT_THROW(static_cast<void>(cross_entropy(logits, targets, {.sample_weight = ones({4})})), ShapeError);
}

}  // namespace
}  // namespace lockstep::ops
