// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/matmul.h"

#include "tests/runtime/kernels/kernel_fixture.h"

namespace lockstep::kernels {
namespace {

using testing::bytes_of;
using testing::KernelTest;
using testing::OnName;
using testing::ProductTypes;
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

template <class T>
class MatmulTest : public KernelTest<T, MatrixProducts> {
 protected:
  void compare(const MatmulCase& c, bool transpose_a, bool transpose_b, bool with_bias, bool accumulate,
               DType out_dtype) {
    SCOPED_TRACE(::testing::Message() << c.batch << " of [" << c.m << ", " << c.k << "] x [" << c.k << ", " << c.n
                                      << "], transposed " << transpose_a << transpose_b << ", bias " << with_bias
                                      << ", accumulate " << accumulate << ", out " << name_of(out_dtype));
    const Tensor a = this->random(matrix(c, c.m, c.k, transpose_a), 1);
    const Tensor b = this->random(matrix(c, c.k, c.n, transpose_b), 2);
    const Tensor bias = with_bias ? this->random({c.n}, 3) : Tensor();
    this->expect_matches_reference(
        [&](const auto& on) {
          const Tensor out = on.copy(random_tensor(matrix(c, c.m, c.n, false), out_dtype, 4));
          on->matmul(on(a), transpose_a, on(b), transpose_b, on(bias), accumulate, out);
          return std::vector{out};
        },
        this->bounds(c.k + 2, 1, out_dtype));
  }
};
TYPED_TEST_SUITE(MatmulTest, ProductTypes, OnName);

TYPED_TEST(MatmulTest, MatchesReferenceForEveryTranspose) {
  for (const MatmulCase& c : kMatmulCases) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true})
        this->compare(c, transpose_a, transpose_b, false, false, this->kDType);
    }
  }
}

TYPED_TEST(MatmulTest, AddsBiasAndFormerValues) {
  for (const MatmulCase& c : kMatmulCases) {
    for (const bool transpose_a : {false, true}) {
      this->compare(c, transpose_a, true, true, false, this->kDType);
      this->compare(c, transpose_a, false, true, true, this->kDType);
      this->compare(c, transpose_a, false, false, true, this->kDType);
    }
  }
}

TYPED_TEST(MatmulTest, WritesFloat32FromAnyDtype) {
  for (const MatmulCase& c : kMatmulCases) {
    for (const bool accumulate : {false, true}) this->compare(c, true, false, true, accumulate, DType::kFloat32);
  }
}

TYPED_TEST(MatmulTest, TwoCallsGiveTheSameBits) {
  const Tensor a = this->random({64, 300}, 1);
  const Tensor b = this->random({300, 40}, 2);
  const auto run = [&, on = this->tested()] {
    const Tensor out = on.empty({64, 40});
    on->matmul(on(a), false, on(b), false, {}, false, out);
    return bytes_of(out);
  };
  EXPECT_TRUE(run() == run());
}

}  // namespace
}  // namespace lockstep::kernels
