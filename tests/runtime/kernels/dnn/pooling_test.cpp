// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/pooling.h"

#include <limits>

#include "tests/runtime/kernels/kernel_fixture.h"

namespace lockstep::kernels {
namespace {

using testing::kAllTypes;
using testing::KernelTest;
using testing::name_of_on;
using testing::tensor_of;
using testing::values_of;

struct PoolCase {
  const char* name;
  PoolGeometry geometry;
  Shape x;
};

const std::vector<PoolCase>& pool_cases() {
  static const std::vector<PoolCase> table{
      {"2x2", {.window = {2, 2}, .stride = {2, 2}}, {3, 8, 8, 16}},
      {"overlapping with padding", {.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}, {2, 7, 9, 5}},
      {"channels of every width", {.window = {2, 2}, .stride = {2, 2}}, {2, 6, 6, 29}},
      {"left-over pixels", {.window = {2, 3}, .stride = {2, 2}}, {2, 5, 6, 3}},
      {"one channel", {.window = {3, 3}, .stride = {1, 1}, .padding = {1, 1}}, {1, 6, 6, 1}},
      {"1d", {.spatial_rank = 1, .window = {3}, .stride = {2}, .padding = {1}}, {2, 11, 4}},
      {"3d", {.spatial_rank = 3, .window = {2, 2, 2}, .stride = {2, 2, 2}}, {2, 4, 6, 4, 8}},
      {"no images", {.window = {2, 2}, .stride = {2, 2}}, {0, 4, 4, 3}},
  };
  return table;
}

PoolGeometry of_kind(PoolGeometry geometry, PoolKind kind, bool count_include_pad = true) {
  geometry.kind = kind;
  geometry.count_include_pad = count_include_pad;
  return geometry;
}

class PoolTest : public KernelTest<Pooling> {
 protected:
  static Tensor indices_for(const Place& on, PoolKind kind, const Shape& y) {
    return kind == PoolKind::kMax ? on.empty(y, DType::kInt32) : Tensor();
  }
  void compare_forward(const PoolGeometry& geometry, const Tensor& x) {
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor y = on.empty(pool_output_shape(x.shape(), geometry));
          const Tensor indices = indices_for(on, geometry.kind, y.shape());
          on->pool_forward(geometry, on(x), y, indices);
          return indices.defined() ? std::vector{y, indices} : std::vector{y};
        },
        bounds(27));
  }
  void compare_backward(const PoolGeometry& geometry, const Tensor& x) {
    const Shape y_shape = pool_output_shape(x.shape(), geometry);
    const Place exact = reference();
    const Tensor indices = indices_for(exact, geometry.kind, y_shape);
    exact->pool_forward(geometry, x, exact.empty(y_shape), indices);
    const Tensor dy = random(y_shape, 2);
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor dx = on.empty(x.shape());
          on->pool_backward(geometry, on(dy), on(indices), dx);
          return std::vector{dx};
        },
        bounds(27));
  }
};
INSTANTIATE_TEST_SUITE_P(On, PoolTest, kAllTypes, name_of_on);

TEST_P(PoolTest, MaximumMatchesReference) {
  for (const PoolCase& c : pool_cases()) {
    SCOPED_TRACE(c.name);
    const PoolGeometry geometry = of_kind(c.geometry, PoolKind::kMax);
    compare_forward(geometry, random(c.x, 1));
    compare_backward(geometry, random(c.x, 1));
  }
}

TEST_P(PoolTest, AverageMatchesReference) {
  for (const PoolCase& c : pool_cases()) {
    for (const bool count_include_pad : {true, false}) {
      SCOPED_TRACE(c.name);
      const PoolGeometry geometry = of_kind(c.geometry, PoolKind::kAverage, count_include_pad);
      compare_forward(geometry, random(c.x, 1));
      compare_backward(geometry, random(c.x, 1));
    }
  }
}

TEST_P(PoolTest, FirstMaximumWinsAndNanBeforeAll) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const PoolGeometry geometry{.spatial_rank = 1, .window = {3}, .stride = {3}};
  constexpr std::int64_t kChannels = 29;
  std::vector<double> values, winners;
  for (const double pixel : {1.0, 1.0, 0.0, /**/ 2.0, kNan, 5.0, /**/ -kInfinity, -kInfinity, -kInfinity}) {
    values.insert(values.end(), kChannels, pixel);
  }
  for (const double pixel : {0, 4, 6}) winners.insert(winners.end(), kChannels, pixel);
  const Tensor x = tensor_of(values, {1, 9, kChannels}, dtype());
  const auto on = tested();
  const Tensor y = on.empty({1, 3, kChannels});
  const Tensor indices = on.empty({1, 3, kChannels}, DType::kInt32);
  on->pool_forward(geometry, on(x), y, indices);
  EXPECT_EQ(values_of(indices), winners);
  for (std::int64_t channel = 0; channel < kChannels; ++channel) {
    EXPECT_EQ(y.item(channel), 1);
    EXPECT_TRUE(std::isnan(y.item(kChannels + channel)));
    EXPECT_EQ(y.item(2 * kChannels + channel), -kInfinity);
  }
}

TEST_P(PoolTest, GlobalAverageMatchesReference) {
  for (const Shape& shape :
       {Shape{3, 4, 4, 32}, Shape{2, 7, 3}, Shape{1, 3, 2, 5, 7}, Shape{1, 3000, 4}, Shape{0, 4, 2}}) {
    SCOPED_TRACE(shape.str());
    const Shape y_shape{shape.front(), shape.back()};
    const Tensor x = random(shape, 1);
    const Tensor dy = random(y_shape, 2);
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor y = on.empty(y_shape);
          const Tensor dx = on.empty(shape);
          on->global_average_pool(on(x), y);
          on->global_average_pool_backward(on(dy), dx);
          return std::vector{y, dx};
        },
        bounds(64));
  }
}

}  // namespace
}  // namespace lockstep::kernels
