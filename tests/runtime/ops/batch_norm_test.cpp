// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/batch_norm.h"

#include <gmock/gmock.h>

#include "runtime/kernels/assign.h"
#include "tests/runtime/kernels/tables.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::values_of;
using ops::testing::name_of_on;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

class BatchNormTest : public ops::testing::OperationTest {
 protected:
  static constexpr std::int64_t kChannels = 3;

  const Tensor gamma_ = random_wide({kChannels}, 2, 0.5, 1.5);
  const Tensor beta_ = random_wide({kChannels}, 3);
  /// A mean per channel and a variance.
  const Tensor running_ = random_wide({2, kChannels}, 4, 0.5, 1.5);

  static Tensor train(const std::vector<Tensor>& in, bool relu) {
    return batch_norm(in[0], in[1], in[2], in.size() > 3 ? in[3] : Tensor(), {}, {}, {.relu = relu});
  }

  /// Statistics over 20 rows; the normalised values, and with them the terms of the backward's sums, are below 3.
  static constexpr ops::testing::Accuracy kAccuracy{.terms = 20, .magnitude = 3};
};

INSTANTIATE_TEST_SUITE_P(On, BatchNormTest, kernels::testing::kAllTypes, name_of_on);

TEST_P(BatchNormTest, Training) {
  for (const bool relu : {false, true}) {
    check([relu](const auto& in) { return train(in, relu); }, {random({5, 4, 3}, 1), gamma_, beta_}, kAccuracy);
  }
}

TEST_P(BatchNormTest, TrainingWithResidual) {
  for (const bool relu : {false, true}) {
    check([relu](const auto& in) { return train(in, relu); },
          {random({5, 4, 3}, 1), gamma_, beta_, random({5, 4, 3}, 5)}, kAccuracy);
  }
}

/// Gradients that meet at a batch norm are added in the order in which they come, and each sum is rounded.
TEST_P(BatchNormTest, OfSeveralUsesHasTheGradientsOfTheirSum) {
  const Shape shape{70, 3};
  const Tensor x = leaf(random(shape, 1)), gamma = leaf(gamma_), beta = leaf(beta_), residual = leaf(random(shape, 2));
  const std::vector<Tensor> gradients{random(shape, 3).to(device()), random(shape, 4, -0.01, 0.01).to(device()),
                                      random(shape, 5, -0.1, 0.1).to(device())};
  for (const bool relu : {false, true}) {
    for (const bool added : {false, true}) {
      std::vector<Tensor> leaves{x, gamma, beta};
      if (added) leaves.push_back(residual);
      for (std::size_t uses = 2; uses <= 3; ++uses) {
        const Tensor y = train(leaves, relu);
        Tensor sum = gradients[0];
        for (std::size_t i = 1; i < uses; ++i) sum = sum + gradients[i];
        const std::vector<Tensor> expected = autograd::grad(y, leaves, sum, {.retain_graph = true});
        const std::vector<Tensor> found =
            autograd::grad(std::vector<Tensor>(uses, y), leaves, {gradients.begin(), gradients.begin() + uses});
        for (std::size_t i = 0; i < leaves.size(); ++i) {
          if (device() == kCpu) {
            EXPECT_THAT(values_of(found[i]), ::testing::ElementsAreArray(values_of(expected[i]))) << i;
          } else {
            kernels::testing::expect_close(found[i], expected[i], kernels::testing::bounds_for(dtype(), 70, 4));
          }
        }
      }
    }
  }
}

TEST_P(BatchNormTest, OfOneRowIsBetaAndHasNoInputGradient) {
  const Tensor x = leaf(random({1, 3}, 1)), gamma = leaf(gamma_), beta = leaf(beta_);
  const Tensor y = train({x, gamma, beta}, false);
  kernels::testing::expect_close(y.reshaped({3}), beta_, kernels::testing::bounds_for(dtype()));
  const std::vector<Tensor> grads = autograd::grad(sum(y), {x, gamma, beta});
  EXPECT_THAT(values_of(grads[0]), ElementsAre(0, 0, 0));
  EXPECT_THAT(values_of(grads[1]), ElementsAre(0, 0, 0));
  EXPECT_THAT(values_of(grads[2]), ElementsAre(1, 1, 1));
}

TEST_P(BatchNormTest, OfNoRowsGivesZeroGradients) {
  const Tensor x = leaf(random({0, 4, 3}, 1)), gamma = leaf(gamma_), beta = leaf(beta_);
  const Tensor next = Tensor::empty({2, 3}, wide(), device());
  const Tensor y = batch_norm(x, gamma, beta, x, running_.to(device()), next, {.relu = true});
  EXPECT_EQ(y.shape(), x.shape());
  EXPECT_EQ(values_of(next), values_of(running_)) << "running statistics stay";
  const std::vector<Tensor> grads = autograd::grad(sum(y), {x, gamma, beta});
  EXPECT_EQ(grads[0].shape(), x.shape());
  EXPECT_THAT(values_of(grads[1]), ElementsAre(0, 0, 0));
  EXPECT_THAT(values_of(grads[2]), ElementsAre(0, 0, 0));
}

TEST_P(BatchNormTest, Inference) {
  for (const std::int64_t rows : {5, 1, 0}) {
    for (const bool relu : {false, true}) {
      const auto infer = [&](const std::vector<Tensor>& in) {
        const DType wide = in[0].dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
        const Tensor running = cast(running_.to(in[0].device()), wide);
        return batch_norm_inference(in[0], in[1], in[2], in.size() > 3 ? in[3] : Tensor(), running, {.relu = relu});
      };
      const Tensor x = random({rows, 2, 3}, 1), residual = random({rows, 2, 3}, 5);
      check(infer, {x, gamma_, beta_}, kAccuracy);
      check(infer, {x, gamma_, beta_, residual}, kAccuracy);
    }
  }
}

TEST_P(BatchNormTest, RunningStatisticsMoveByTheMomentum) {
  const Tensor x = kernels::testing::tensor_of({1, 0, 3, 2, 5, 10}, {3, 2}, dtype()).to(device());
  const Tensor running = kernels::testing::tensor_of({1, 2, 10, 20}, {2, 2}, wide()).to(device());
  const Tensor next = Tensor::empty({2, 2}, wide(), device());
  const Tensor one = kernels::testing::tensor_of({1, 1}, {2}, wide()).to(device());
  batch_norm(x, one, one, {}, running, next, {.momentum = 0.25});
  // Means 3 and 4; unbiased variances 4 and 28.
  EXPECT_THAT(values_of(next),
              ElementsAre(DoubleNear(1.5, 1e-6), DoubleNear(2.5, 1e-6), DoubleNear(8.5, 1e-5), DoubleNear(22, 1e-5)));
  EXPECT_THAT(values_of(running), ElementsAre(1, 2, 10, 20)) << "the accepted statistics are only read";
}

TEST_P(BatchNormTest, OfOneRowKeepsTheRunningVarianceFinite) {
  const auto here = [](const Tensor& tensor) { return tensor.to(device()); };
  const Tensor next = Tensor::empty({2, 3}, wide(), device());
  batch_norm(here(random({1, 3}, 1)), here(gamma_), here(beta_), {}, here(running_), next, {});
  for (const double value : values_of(next)) EXPECT_TRUE(std::isfinite(value));
}

/// Two ranks in one process: gather and sum see what the other half would have contributed.
class TwoShares : public StatisticsReducer {
 public:
  explicit TwoShares(const Tensor& other_half) : other_(other_half) {}

  Tensor gather(const Tensor& packed) override {
    const std::int64_t channels = other_.shape().back();
    const Tensor both = Tensor::empty({2, packed.numel()}, packed.dtype());
    const Tensor theirs = both.rows(1, 2).reshaped({packed.numel()});
    kernels::cast(packed, both.rows(0, 1).reshaped({packed.numel()}));
    kernels::testing::reference_of<kernels::BatchNormalization>().batch_norm_statistics(
        other_, theirs.rows(0, channels), theirs.rows(channels, 2 * channels));
    kernels::fill(theirs.rows(2 * channels, 2 * channels + 1), static_cast<double>(other_.shape().rows()));
    return both;
  }
  void sum(const Tensor& sums) override { kernels::accumulate(other_sums, sums); }

  Tensor other_sums;

 private:
  Tensor other_;
};

TEST(SyncBatchNorm, OfTwoSharesIsThatOfTheWholeBatch) {
  using kernels::testing::random_tensor;
  const Tensor x = random_tensor({7, 2, 3}, DType::kFloat64, 1);
  const Tensor dy = random_tensor({7, 2, 3}, DType::kFloat64, 2);
  const Tensor gamma = random_tensor({3}, DType::kFloat64, 3, 0.5, 1.5), beta = random_tensor({3}, DType::kFloat64, 4);
  for (const Tensor& tensor : {gamma, beta}) tensor.set_requires_grad(true);
  x.set_requires_grad(true);
  const Tensor whole = batch_norm(x, gamma, beta, {}, {}, {}, {.relu = true});
  const std::vector<Tensor> expected = autograd::grad(whole, {x, gamma, beta}, dy);

  const Tensor mine = x.detach_rows(0, 3), theirs = x.detach_rows(3, 7);
  mine.set_requires_grad(true);
  TwoShares reducer(theirs);
  const Tensor y = batch_norm(mine, gamma, beta, {}, {}, {}, {.relu = true, .reducer = &reducer});
  kernels::testing::expect_close(y, whole.rows(0, 3), {.relative = 1e-12, .absolute = 1e-14});
  // What the other rank's backward would add: its part of the sums, sum dy' and sum dy' (x - mean).
  const std::vector<double> ys = values_of(whole), dys = values_of(dy), xs = values_of(x);
  std::vector<double> mean(3), sums(6);
  for (std::size_t i = 0; i < xs.size(); ++i) mean[i % 3] += xs[i] / 14;
  for (std::size_t i = 3 * 6; i < xs.size(); ++i) {
    const double masked = ys[i] > 0 ? dys[i] : 0;
    sums[i % 3] += masked;
    sums[3 + i % 3] += masked * (xs[i] - mean[i % 3]);
  }
  reducer.other_sums = Tensor::from(sums, {6});
  const std::vector<Tensor> found = autograd::grad(y, {mine, gamma, beta}, dy.rows(0, 3));
  kernels::testing::expect_close(found[0], expected[0].rows(0, 3), {.relative = 1e-10, .absolute = 1e-13});
  // A parameter's gradient is this rank's share: the difference to the whole is the other's.
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(values_of(found[2])[c] + sums[c], values_of(expected[2])[c], 1e-12);
  }
}

}  // namespace
}  // namespace lockstep::ops
