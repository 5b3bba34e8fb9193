// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/kernels/pointwise.h"
#include "tests/runtime/kernels/tables.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::kernels {
namespace {

using testing::random_tensor;
using testing::reference_of;
using testing::tensor_of;
using testing::values_of;

constexpr DropoutKey kKey{.seed = 42, .step = 7, .layer = 3};

std::vector<double> dropped(const Tensor& x, double p, const DropoutKey& key, std::int64_t first_element) {
  const Tensor y = Tensor::empty(x.shape(), x.dtype());
  reference_of<Pointwise>().dropout(x, p, key, first_element, y);
  return values_of(y);
}

Tensor ones(std::int64_t count) {
  return tensor_of(std::vector<double>(static_cast<std::size_t>(count), 1.0), {count}, DType::kFloat64);
}

TEST(ReferenceDropout, TheMaskDoesNotDependOnHowTheTensorIsSplit) {
  const Tensor x = random_tensor({101}, DType::kFloat32, 1);
  const std::vector<double> whole = dropped(x, 0.4, kKey, 1000);
  for (const std::int64_t cut : {1, 3, 50, 99}) {
    std::vector<double> parts = dropped(x.rows(0, cut), 0.4, kKey, 1000);
    const std::vector<double> rest = dropped(x.rows(cut, 101), 0.4, kKey, 1000 + cut);
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(parts, whole) << cut;
  }
}

TEST(ReferenceDropout, KeepsTheShareAskedForAndScalesIt) {
  const std::vector<double> values = dropped(ones(100'000), 0.25, kKey, 0);
  std::int64_t kept = 0;
  for (const double value : values) {
    if (value != 0) {
      EXPECT_DOUBLE_EQ(value, 1 / 0.75);
      ++kept;
    }
  }
  EXPECT_NEAR(static_cast<double>(kept) / 100'000, 0.75, 0.01);
}

TEST(ReferenceDropout, EveryPartOfTheKeyChangesTheMask) {
  const Tensor x = ones(64);
  const std::vector<double> mask = dropped(x, 0.5, kKey, 0);
  EXPECT_EQ(dropped(x, 0.5, kKey, 0), mask);
  EXPECT_NE(dropped(x, 0.5, {.seed = 43, .step = 7, .layer = 3}, 0), mask);
  EXPECT_NE(dropped(x, 0.5, {.seed = 42, .step = 8, .layer = 3}, 0), mask);
  EXPECT_NE(dropped(x, 0.5, {.seed = 42, .step = 7, .layer = 4}, 0), mask);
  EXPECT_NE(dropped(x, 0.5, {.seed = 42, .step = 7, .layer = 3, .call = 1}, 0), mask);
  EXPECT_NE(dropped(x, 0.5, kKey, 64), mask);
}

TEST(ReferenceDropout, NothingAndEverythingMayBeDropped) {
  const Tensor x = ones(8);
  EXPECT_EQ(dropped(x, 0, kKey, 0), values_of(x));
  EXPECT_EQ(dropped(x, 1, kKey, 0), std::vector<double>(8, 0.0));
  EXPECT_THROW(dropped(x, 1.5, kKey, 0), UsageError);
  EXPECT_THROW(dropped(x, -0.1, kKey, 0), UsageError);
}

}  // namespace
}  // namespace lockstep::kernels
