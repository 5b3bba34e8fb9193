// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/adaptive_pool.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "amp/autocast/autocast.h"
#include "runtime/base/error.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::ops {
namespace {

using kernels::testing::values_of;
using testing::ElementsAre;

TEST(AdaptivePool, TakesPyTorchsWindowsForAllExtents) {
  for (std::int64_t n = 1; n <= 9; ++n) {
    std::vector<float> line(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < line.size(); ++i) line[i] = static_cast<float>(i * i % 11);
    const Tensor x = Tensor::from(line, {1, n, 1});
    for (std::int64_t k = 1; k <= 9; ++k) {
      SCOPED_TRACE(std::to_string(n) + " to " + std::to_string(k));
      const std::vector<double> average = values_of(adaptive_average_pool(x, {k}));
      const std::vector<double> most = values_of(adaptive_max_pool(x, {k}));
      for (std::int64_t i = 0; i < k; ++i) {
        const auto begin = line.begin() + i * n / k, end = line.begin() + ((i + 1) * n + k - 1) / k;
        double sum = 0;
        for (auto each = begin; each != end; ++each) sum += static_cast<double>(*each);
        const auto at = static_cast<std::size_t>(i);
        EXPECT_NEAR(average[at], sum / static_cast<double>(end - begin), 1e-5);
        EXPECT_EQ(most[at], static_cast<double>(*std::max_element(begin, end)));
      }
    }
  }
}

TEST(AdaptivePool, SendsTheGradientToTheFirstOfEqualMaxima) {
  // Windows of 2 x 2 that overlap; in the first, 5 stands in the second column of row 0 and in the first of row 1.
  const Tensor x = Tensor::from<float>({1, 5, 0, 5, 2, 0, 0, 0, 0}, {1, 3, 3, 1});
  x.set_requires_grad(true);
  sum(adaptive_max_pool(x, {2, 2})).backward();
  EXPECT_THAT(values_of(x.grad()), ElementsAre(0, 2, 0, 1, 1, 0, 0, 0, 0));
}

TEST(AdaptivePool, AddsUpSixteenBitsInFloat32AndStaysInThem) {
  const Tensor x = cast(Tensor::from<float>({2048, 1, 1, 1, 1}, {1, 5, 1}), DType::kFloat16);
  const Tensor y = adaptive_average_pool(x, {2});
  EXPECT_EQ(y.dtype(), DType::kFloat16);
  // (2048 + 1 + 1) / 3 = 683.33; in float16 2048 + 1 would stay 2048, and the mean 682.7.
  EXPECT_THAT(values_of(y), ElementsAre(683.5, 1));
  const amp::Autocast autocast(DType::kBFloat16);
  EXPECT_EQ(adaptive_average_pool(cast(x, DType::kFloat32), {2}).dtype(), DType::kFloat32);
  EXPECT_EQ(adaptive_max_pool(x, {2}).dtype(), DType::kFloat16);
}

TEST(AdaptivePool, TakesABatchWithoutSamples) {
  const Tensor x = Tensor::zeros({0, 5, 7, 2}, DType::kFloat32);
  x.set_requires_grad(true);
  const Tensor y = adaptive_average_pool(x, {2, 3}) + adaptive_max_pool(x, {2, 3});
  EXPECT_EQ(y.shape(), (Shape{0, 2, 3, 2}));
  sum(y).backward();
  EXPECT_EQ(x.grad().shape(), x.shape());
}

TEST(AdaptivePool, RefusesWhatHasNoWindows) {
  const Tensor image = Tensor::zeros({2, 5, 7, 3}, DType::kFloat32);
  EXPECT_THROW(adaptive_average_pool(image, {2}), ShapeError);
  EXPECT_THROW(adaptive_average_pool(image, {2, 3, 3}), ShapeError);
  EXPECT_THROW(adaptive_max_pool(image, {0, 3}), ShapeError);
  EXPECT_THROW(adaptive_max_pool(Tensor::zeros({2, 0, 7, 3}, DType::kFloat32), {1, 1}), ShapeError);
  EXPECT_THROW(adaptive_max_pool(Tensor::zeros({2, 3}, DType::kFloat32), {}), ShapeError);
  EXPECT_THROW(adaptive_max_pool(Tensor::zeros({2, 5, 3}, DType::kInt64), {2}), ShapeError);
  EXPECT_THROW(adaptive_average_pool(Tensor(), {2}), UsageError);
}

}  // namespace
}  // namespace lockstep::ops
