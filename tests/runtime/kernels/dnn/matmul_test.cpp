// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/matmul.h"

#include "tests/runtime/kernels/kernel_fixture.h"

namespace lockstep::kernels {
namespace {

using testing::bytes_of;
using testing::KernelTest;
using testing::kProductTypes;
using testing::name_of_on;
using testing::random_tensor;

struct MatmulCase {
  std::int64_t batch, m, n, k;  ///< batch 0: rank 2
};

constexpr MatmulCase kMatmulCases[]{
    {0, 32, 10, 64}, {0, 33, 7, 19},    {0, 1, 17, 5},     {0, 8, 1, 16},   {0, 1, 1, 1},
    {0, 64, 64, 64}, {0, 5, 3, 0},      {0, 0, 3, 4},      {0, 4, 0, 3},    {3, 9, 6, 5},
    {2, 1, 8, 1},    {0, 20000, 8, 12}, {0, 12, 8, 20000}, {60, 64, 8, 64}, {0, 3, 40, 100},
};

Shape matrix(const MatmulCase& c, std::int64_t rows, std::int64_t columns, bool transpose) {
  if (transpose) std::swap(rows, columns);
  return c.batch == 0 ? Shape{rows, columns} : Shape{c.batch, rows, columns};
}

class MatmulTest : public KernelTest<MatrixProducts> {
 protected:
  void compare(const MatmulCase& c, bool transpose_a, bool transpose_b, bool with_bias, bool accumulate,
               DType out_dtype) {
    SCOPED_TRACE(::testing::Message() << c.batch << " of [" << c.m << ", " << c.k << "] x [" << c.k << ", " << c.n
                                      << "], transposed " << transpose_a << transpose_b << ", bias " << with_bias
                                      << ", accumulate " << accumulate << ", out " << name_of(out_dtype));
    const Tensor a = random(matrix(c, c.m, c.k, transpose_a), 1);
    const Tensor b = random(matrix(c, c.k, c.n, transpose_b), 2);
    const Tensor bias = with_bias ? random({c.n}, 3) : Tensor();
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor out = on.copy(random_tensor(matrix(c, c.m, c.n, false), out_dtype, 4));
          on->matmul(on(a), transpose_a, on(b), transpose_b, on(bias), accumulate, out);
          return std::vector{out};
        },
        bounds(c.k + 2, 1, out_dtype));
  }
};
INSTANTIATE_TEST_SUITE_P(On, MatmulTest, kProductTypes, name_of_on);

TEST_P(MatmulTest, MatchesReferenceForEveryTranspose) {
  for (const MatmulCase& c : kMatmulCases) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) compare(c, transpose_a, transpose_b, false, false, dtype());
    }
  }
}

TEST_P(MatmulTest, AddsBiasAndFormerValues) {
  for (const MatmulCase& c : kMatmulCases) {
    for (const bool transpose_a : {false, true}) {
      compare(c, transpose_a, true, true, false, dtype());
      compare(c, transpose_a, false, true, true, dtype());
      compare(c, transpose_a, false, false, true, dtype());
    }
  }
}

TEST_P(MatmulTest, WritesFloat32FromAnyDtype) {
  for (const MatmulCase& c : kMatmulCases) {
    for (const bool accumulate : {false, true}) compare(c, true, false, true, accumulate, DType::kFloat32);
  }
}

TEST_P(MatmulTest, TwoCallsGiveTheSameBits) {
  const Tensor a = random({64, 300}, 1);
  const Tensor b = random({300, 40}, 2);
  const auto run = [&, on = tested()] {
    const Tensor out = on.empty({64, 40});
    on->matmul(on(a), false, on(b), false, {}, false, out);
    return bytes_of(out);
  };
  EXPECT_TRUE(run() == run());
}

}  // namespace
}  // namespace lockstep::kernels
