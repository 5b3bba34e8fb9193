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
template <class T>
class OnTwoThreads : public testing::KernelTest<T, Convolution, MatrixProducts> {
 protected:
  void SetUp() override {
    testing::KernelTest<T, Convolution, MatrixProducts>::SetUp();
    omp_set_num_threads(2);
  }
  void TearDown() override { omp_set_num_threads(before_); }

 private:
  int before_ = omp_get_max_threads();
};
using Types =
    ::testing::Types<testing::On<testing::kCpuType, DType::kFloat32>, testing::On<testing::kCpuType, DType::kFloat16>,
                     testing::On<testing::kCpuType, DType::kBFloat16>>;
TYPED_TEST_SUITE(OnTwoThreads, Types, testing::OnName);

TYPED_TEST(OnTwoThreads, ProductsAreThoseOfTheReference) {
  const Tensor a = this->random({128, 300}, 1), b = this->random({300, 256}, 2), dy = this->random({128, 256}, 3);
  this->expect_matches_reference(
      [&](const auto& on) {
        const Tensor forward = on.empty({128, 256}), gradient = on.empty({300, 256});
        on->matmul(on(a), false, on(b), false, {}, false, forward);
        on->matmul(on(a), true, on(dy), false, {}, false, gradient);
        return std::vector{forward, gradient};
      },
      this->bounds(300));
}

TYPED_TEST(OnTwoThreads, ConvolutionsAreThoseOfTheReference) {
  const ConvGeometry geometry{.padding = {1, 1, 0}};
  const Tensor x = this->random({8, 16, 16, 16}, 1), weight = this->random({32, 3, 3, 16}, 2),
               dy = this->random({8, 16, 16, 32}, 3);
  this->expect_matches_reference(
      [&](const auto& on) {
        const Tensor y = on.empty({8, 16, 16, 32}), dx = on.empty({8, 16, 16, 16}), dweight = on.empty({32, 3, 3, 16});
        on->conv_forward(geometry, on(x), on(weight), {}, y);
        on->conv_backward(geometry, on(x), on(weight), on(dy), dx, dweight, {}, false);
        return std::vector{y, dx, dweight};
      },
      this->bounds(2048));
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
