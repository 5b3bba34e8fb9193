// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <omp.h>

#include "runtime/kernels/convolution.h"
#include "runtime/kernels/cpu/widen.h"
#include "runtime/kernels/matmul.h"
#include "tests/runtime/kernels/kernel_fixture.h"

namespace lockstep::kernels {
namespace {

/// Operations large enough for two threads, on as many.
class OnTwoThreads : public testing::KernelTest<Convolution, MatrixProducts> {
 protected:
  void SetUp() override {
    testing::KernelTest<Convolution, MatrixProducts>::SetUp();
    omp_set_num_threads(2);
  }
  void TearDown() override { omp_set_num_threads(before_); }

 private:
  int before_ = omp_get_max_threads();
};
INSTANTIATE_TEST_SUITE_P(On, OnTwoThreads,
                         ::testing::Values(testing::On{kCpu, DType::kFloat32}, testing::On{kCpu, DType::kFloat16},
                                           testing::On{kCpu, DType::kBFloat16}),
                         testing::name_of_on);

TEST_P(OnTwoThreads, ProductsAreThoseOfTheReference) {
  const Tensor a = random({128, 300}, 1), b = random({300, 256}, 2), dy = random({128, 256}, 3);
  expect_matches_reference(
      [&](const Place& on) {
        const Tensor forward = on.empty({128, 256}), gradient = on.empty({300, 256});
        on->matmul(on(a), false, on(b), false, {}, false, forward);
        on->matmul(on(a), true, on(dy), false, {}, false, gradient);
        return std::vector{forward, gradient};
      },
      bounds(300));
}

TEST_P(OnTwoThreads, ConvolutionsAreThoseOfTheReference) {
  const ConvGeometry geometry{.padding = {1, 1, 0}};
  const Tensor x = random({8, 16, 16, 16}, 1), weight = random({32, 3, 3, 16}, 2), dy = random({8, 16, 16, 32}, 3);
  expect_matches_reference(
      [&](const Place& on) {
        const Tensor y = on.empty({8, 16, 16, 32}), dx = on.empty({8, 16, 16, 16}), dweight = on.empty({32, 3, 3, 16});
        on->conv_forward(geometry, on(x), on(weight), {}, y);
        on->conv_backward(geometry, on(x), on(weight), on(dy), dx, dweight, {}, false);
        return std::vector{y, dx, dweight};
      },
      bounds(2048));
}

TEST(WidenedSums, AreCutByTheirShapeAloneNotByTheThreads) {
  // Rows and what one takes as float32: a product's 64 x 1024 weight gradient, a small one, one that fits whole.
  const std::int64_t shapes[][3] = {{4096, 4 * (64 + 1024), 4 * 64 * 1024}, {8192, 4 * 256, 4 * 128 * 128}, {64, 4, 4}};
  const int before = omp_get_max_threads();
  for (const auto& [rows, row_bytes, stationary_bytes] : shapes) {
    omp_set_num_threads(1);
    const std::int64_t alone = cpu::chunk_summed_rows(rows, row_bytes, stationary_bytes);
    EXPECT_LE(alone, rows);
    for (const int threads : {2, 3, 64}) {
      omp_set_num_threads(threads);
      EXPECT_EQ(cpu::chunk_summed_rows(rows, row_bytes, stationary_bytes), alone) << threads << " threads, " << rows;
    }
  }
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace lockstep::kernels
