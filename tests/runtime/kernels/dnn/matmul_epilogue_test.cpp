// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <limits>

#include "runtime/kernels/matmul.h"
#include "tests/runtime/kernels/kernel_fixture.h"

namespace lockstep::kernels {
namespace {

using testing::Bounds;
using testing::bounds_for;
using testing::epsilon_of;
using testing::KernelTest;
using testing::OnName;
using testing::ProductTypes;
using testing::random_tensor;

constexpr Activation kActivations[]{Activation::kRelu, Activation::kGelu, Activation::kGeluTanh, Activation::kTanh,
                                    Activation::kSigmoid};

struct ProductCase {
  std::int64_t m, n, k;
};

/// Vectors, odd extents, nothing.
constexpr ProductCase kProductCases[]{{32, 16, 64}, {33, 7, 19}, {1, 17, 5}, {8, 1, 16},
                                      {5, 3, 0},    {0, 3, 4},   {4, 0, 3},  {1, 1, 1}};
/// So many rows, or terms, that they take several chunks.
constexpr ProductCase kLongCases[]{{20000, 8, 12}, {12, 8, 20000}};

/// Of products that may be rounded once more before an activation or a derivative.
Bounds epilogue_bounds(Bounds bounds, DType dtype) {
  if (!is_reduced(dtype)) return bounds;
  bounds.relative *= 2;
  // For z < 0 gelu is small where z is not, so what rounds z is more than that part of gelu(z).
  bounds.absolute += epsilon_of(dtype);
  return bounds;
}

template <class T>
class EpilogueTest : public KernelTest<T, MatrixProducts> {
 protected:
  static ::testing::Message name(const ProductCase& c, Activation activation) {
    return ::testing::Message() << "[" << c.m << ", " << c.k << "] x [" << c.k << ", " << c.n << "], activation "
                                << static_cast<int>(activation);
  }

  /// Products of about unit size, whatever the number of terms: activations are not linear.
  static Tensor operand(const Shape& shape, const ProductCase& c, std::uint32_t seed) {
    const double size = 1.7 / std::sqrt(std::sqrt(static_cast<double>(std::max<std::int64_t>(c.k, 1))));
    return KernelTest<T, MatrixProducts>::random(shape, seed, -size, size);
  }

  void activate(const ProductCase& c, Activation activation, bool transpose_a, bool with_bias, bool keep,
                DType out_dtype) {
    SCOPED_TRACE(name(c, activation) << ", transposed " << transpose_a << ", bias " << with_bias << ", keep " << keep
                                     << ", out " << name_of(out_dtype));
    const Tensor a = operand(transpose_a ? Shape{c.k, c.m} : Shape{c.m, c.k}, c, 1), b = operand({c.n, c.k}, c, 2);
    const Tensor bias = with_bias ? this->random({c.n}, 3) : Tensor();
    this->expect_matches_reference(
        [&](const auto& on) {
          const Tensor out = on.empty({c.m, c.n}, out_dtype);
          Epilogue epilogue(on(bias));
          epilogue.activation = activation;
          if (keep) epilogue.preactivation = on.empty({c.m, c.n}, out_dtype);
          on->matmul(on(a), transpose_a, on(b), true, epilogue, false, out);
          return keep ? std::vector{out, epilogue.preactivation} : std::vector{out};
        },
        epilogue_bounds(this->bounds(c.k + 2, 1, out_dtype), out_dtype));
  }

  void derive(const ProductCase& c, Activation activation, bool transpose_a, DType out_dtype) {
    SCOPED_TRACE(name(c, activation) << ", transposed " << transpose_a << ", out " << name_of(out_dtype));
    const Tensor a = operand(transpose_a ? Shape{c.k, c.m} : Shape{c.m, c.k}, c, 1), b = operand({c.k, c.n}, c, 2);
    const Tensor at = random_tensor({c.m, c.n}, out_dtype, 3, -3, 3);
    this->expect_matches_reference(
        [&](const auto& on) {
          const Tensor out = on.empty({c.m, c.n}, out_dtype);
          Epilogue epilogue;
          epilogue.derivative = activation;
          epilogue.derivative_at = on(at);
          on->matmul(on(a), transpose_a, on(b), false, epilogue, false, out);
          return std::vector{out};
        },
        epilogue_bounds(this->bounds(c.k + 2, 1, out_dtype), out_dtype));
  }

  void sum_rows(const ProductCase& c, bool accumulate, DType out_dtype, DType gradient_dtype) {
    SCOPED_TRACE(name(c, Activation::kNone) << ", accumulate " << accumulate << ", out " << name_of(out_dtype)
                                            << ", gradient " << name_of(gradient_dtype));
    const Tensor a = this->random({c.k, c.m}, 1), b = this->random({c.k, c.n}, 2);
    this->expect_matches_reference(
        [&](const auto& on) {
          const Tensor out = on.copy(random_tensor({c.m, c.n}, out_dtype, 3));
          Epilogue epilogue;
          epilogue.bias_gradient = on.copy(random_tensor({c.m}, gradient_dtype, 4));
          epilogue.accumulate_bias_gradient = accumulate;
          on->matmul(on(a), true, on(b), false, epilogue, accumulate, out);
          return std::vector{out, epilogue.bias_gradient};
        },
        [&] {
          Bounds bounds = this->bounds(c.k + 2, 1, out_dtype);
          bounds.relative = std::max(bounds.relative, bounds_for(gradient_dtype).relative);
          return bounds;
        }());
  }
};
TYPED_TEST_SUITE(EpilogueTest, ProductTypes, OnName);

TYPED_TEST(EpilogueTest, ActivatesWhatItAddsTheBiasTo) {
  for (const ProductCase& c : kProductCases) {
    for (const Activation activation : kActivations) {
      for (const bool with_bias : {false, true}) {
        this->activate(c, activation, false, with_bias, false, this->kDType);
        this->activate(c, activation, false, with_bias, true, this->kDType);
      }
    }
  }
}

TYPED_TEST(EpilogueTest, ActivatesWithATransposedOperandAndIntoFloat32) {
  for (const ProductCase& c : kProductCases) {
    for (const Activation activation : kActivations) {
      this->activate(c, activation, true, true, true, this->kDType);
      this->activate(c, activation, false, true, true, DType::kFloat32);
      this->activate(c, activation, true, true, false, DType::kFloat32);
    }
  }
}

TYPED_TEST(EpilogueTest, MultipliesByADerivative) {
  for (const ProductCase& c : kProductCases) {
    for (const Activation activation : kActivations) {
      this->derive(c, activation, false, this->kDType);
      this->derive(c, activation, true, DType::kFloat32);
    }
  }
}

TYPED_TEST(EpilogueTest, SumsTheRowsOfATransposedOperand) {
  for (const ProductCase& c : kProductCases) {
    for (const bool accumulate : {false, true}) {
      this->sum_rows(c, accumulate, this->kDType, this->kDType);
      this->sum_rows(c, accumulate, DType::kFloat32, DType::kFloat32);
      this->sum_rows(c, accumulate, this->kDType, DType::kFloat32);
    }
  }
}

TYPED_TEST(EpilogueTest, WorksInChunks) {
  for (const ProductCase& c : kLongCases) {
    this->activate(c, Activation::kGeluTanh, false, true, true, this->kDType);
    this->activate(c, Activation::kGelu, true, true, true, this->kDType);
    this->derive(c, Activation::kGelu, false, this->kDType);
    this->derive(c, Activation::kRelu, true, this->kDType);
    this->sum_rows(c, true, this->kDType, DType::kFloat32);
  }
}

TYPED_TEST(EpilogueTest, ActivatesBatches) {
  const Tensor a = this->random({5, 9, 6}, 1), b = this->random({5, 6, 8}, 2), bias = this->random({8}, 3);
  for (const Activation activation : kActivations) {
    this->expect_matches_reference(
        [&](const auto& on) {
          Epilogue epilogue(on(bias));
          epilogue.activation = activation;
          epilogue.preactivation = on.empty({5, 9, 8});
          const Tensor out = on.empty({5, 9, 8});
          on->matmul(on(a), false, on(b), false, epilogue, false, out);
          return std::vector{out, epilogue.preactivation};
        },
        epilogue_bounds(this->bounds(8), this->kDType));
  }
}

TYPED_TEST(EpilogueTest, NaNPassesThroughEveryActivation) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Tensor a = testing::tensor_of({1, kNaN, 2, -1, 1, 3}, {3, 2}, this->kDType), b = this->random({16, 2}, 2);
  for (const Activation activation : kActivations) {
    this->expect_matches_reference(
        [&](const auto& on) {
          Epilogue epilogue;
          epilogue.activation = activation;
          const Tensor out = on.empty({3, 16});
          on->matmul(on(a), false, on(b), true, epilogue, false, out);
          return std::vector{out};
        },
        epilogue_bounds(this->bounds(2, 3), this->kDType));
  }
}

TYPED_TEST(EpilogueTest, TwoCallsGiveTheSameBits) {
  const Tensor a = this->random({300, 64}, 1), b = this->random({300, 40}, 2);
  const auto run = [&] {
    const auto on = this->tested();
    Epilogue epilogue;
    epilogue.bias_gradient = on.empty({64});
    on->matmul(on(a), true, on(b), false, epilogue, false, on.empty({64, 40}));
    return testing::values_of(epilogue.bias_gradient);
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace lockstep::kernels
