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
using testing::kProductTypes;
using testing::name_of_on;
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

class EpilogueTest : public KernelTest<MatrixProducts> {
 protected:
  static ::testing::Message name(const ProductCase& c, Activation activation) {
    return ::testing::Message() << "[" << c.m << ", " << c.k << "] x [" << c.k << ", " << c.n << "], activation "
                                << static_cast<int>(activation);
  }

  /// Products of about unit size, whatever the number of terms: activations are not linear.
  static Tensor operand(const Shape& shape, const ProductCase& c, std::uint32_t seed) {
    const double size = 1.7 / std::sqrt(std::sqrt(static_cast<double>(std::max<std::int64_t>(c.k, 1))));
    return random(shape, seed, -size, size);
  }

  void activate(const ProductCase& c, Activation activation, bool transpose_a, bool with_bias, bool keep,
                DType out_dtype) {
    SCOPED_TRACE(name(c, activation) << ", transposed " << transpose_a << ", bias " << with_bias << ", keep " << keep
                                     << ", out " << name_of(out_dtype));
    const Tensor a = operand(transpose_a ? Shape{c.k, c.m} : Shape{c.m, c.k}, c, 1), b = operand({c.n, c.k}, c, 2);
    const Tensor bias = with_bias ? random({c.n}, 3) : Tensor();
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor out = on.empty({c.m, c.n}, out_dtype);
          Epilogue epilogue(on(bias));
          epilogue.activation = activation;
          if (keep) epilogue.preactivation = on.empty({c.m, c.n}, out_dtype);
          on->matmul(on(a), transpose_a, on(b), true, epilogue, false, out);
          return keep ? std::vector{out, epilogue.preactivation} : std::vector{out};
        },
        epilogue_bounds(bounds(c.k + 2, 1, out_dtype), out_dtype));
  }

  void derive(const ProductCase& c, Activation activation, bool transpose_a, DType out_dtype) {
    SCOPED_TRACE(name(c, activation) << ", transposed " << transpose_a << ", out " << name_of(out_dtype));
    const Tensor a = operand(transpose_a ? Shape{c.k, c.m} : Shape{c.m, c.k}, c, 1), b = operand({c.k, c.n}, c, 2);
    const Tensor at = random_tensor({c.m, c.n}, out_dtype, 3, -3, 3);
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor out = on.empty({c.m, c.n}, out_dtype);
          Epilogue epilogue;
          epilogue.derivative = activation;
          epilogue.derivative_at = on(at);
          on->matmul(on(a), transpose_a, on(b), false, epilogue, false, out);
          return std::vector{out};
        },
        epilogue_bounds(bounds(c.k + 2, 1, out_dtype), out_dtype));
  }

  void sum_rows(const ProductCase& c, bool accumulate, DType out_dtype, DType gradient_dtype) {
    SCOPED_TRACE(name(c, Activation::kNone) << ", accumulate " << accumulate << ", out " << name_of(out_dtype)
                                            << ", gradient " << name_of(gradient_dtype));
    const Tensor a = random({c.k, c.m}, 1), b = random({c.k, c.n}, 2);
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor out = on.copy(random_tensor({c.m, c.n}, out_dtype, 3));
          Epilogue epilogue;
          epilogue.bias_gradient = on.copy(random_tensor({c.m}, gradient_dtype, 4));
          epilogue.accumulate_bias_gradient = accumulate;
          on->matmul(on(a), true, on(b), false, epilogue, accumulate, out);
          return std::vector{out, epilogue.bias_gradient};
        },
        [&] {
          Bounds allowed = bounds(c.k + 2, 1, out_dtype);
          allowed.relative = std::max(allowed.relative, bounds_for(gradient_dtype).relative);
          return allowed;
        }());
  }
};
INSTANTIATE_TEST_SUITE_P(On, EpilogueTest, kProductTypes, name_of_on);

TEST_P(EpilogueTest, ActivatesWhatItAddsTheBiasTo) {
  for (const ProductCase& c : kProductCases) {
    for (const Activation activation : kActivations) {
      for (const bool with_bias : {false, true}) {
        activate(c, activation, false, with_bias, false, dtype());
        activate(c, activation, false, with_bias, true, dtype());
      }
    }
  }
}

TEST_P(EpilogueTest, ActivatesWithATransposedOperandAndIntoFloat32) {
  for (const ProductCase& c : kProductCases) {
    for (const Activation activation : kActivations) {
      activate(c, activation, true, true, true, dtype());
      activate(c, activation, false, true, true, DType::kFloat32);
      activate(c, activation, true, true, false, DType::kFloat32);
    }
  }
}

TEST_P(EpilogueTest, MultipliesByADerivative) {
  for (const ProductCase& c : kProductCases) {
    for (const Activation activation : kActivations) {
      derive(c, activation, false, dtype());
      derive(c, activation, true, DType::kFloat32);
    }
  }
}

TEST_P(EpilogueTest, SumsTheRowsOfATransposedOperand) {
  for (const ProductCase& c : kProductCases) {
    for (const bool accumulate : {false, true}) {
      sum_rows(c, accumulate, dtype(), dtype());
      sum_rows(c, accumulate, DType::kFloat32, DType::kFloat32);
      sum_rows(c, accumulate, dtype(), DType::kFloat32);
    }
  }
}

TEST_P(EpilogueTest, WorksInChunks) {
  for (const ProductCase& c : kLongCases) {
    activate(c, Activation::kGeluTanh, false, true, true, dtype());
    activate(c, Activation::kGelu, true, true, true, dtype());
    derive(c, Activation::kGelu, false, dtype());
    derive(c, Activation::kRelu, true, dtype());
    sum_rows(c, true, dtype(), DType::kFloat32);
  }
}

TEST_P(EpilogueTest, ActivatesBatches) {
  const Tensor a = random({5, 9, 6}, 1), b = random({5, 6, 8}, 2), bias = random({8}, 3);
  for (const Activation activation : kActivations) {
    expect_matches_reference(
        [&](const Place& on) {
          Epilogue epilogue(on(bias));
          epilogue.activation = activation;
          epilogue.preactivation = on.empty({5, 9, 8});
          const Tensor out = on.empty({5, 9, 8});
          on->matmul(on(a), false, on(b), false, epilogue, false, out);
          return std::vector{out, epilogue.preactivation};
        },
        epilogue_bounds(bounds(8), dtype()));
  }
}

TEST_P(EpilogueTest, NaNPassesThroughEveryActivation) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Tensor a = testing::tensor_of({1, kNaN, 2, -1, 1, 3}, {3, 2}, dtype()), b = random({16, 2}, 2);
  for (const Activation activation : kActivations) {
    expect_matches_reference(
        [&](const Place& on) {
          Epilogue epilogue;
          epilogue.activation = activation;
          const Tensor out = on.empty({3, 16});
          on->matmul(on(a), false, on(b), true, epilogue, false, out);
          return std::vector{out};
        },
        epilogue_bounds(bounds(2, 3), dtype()));
  }
}

TEST_P(EpilogueTest, TwoCallsGiveTheSameBits) {
  const Tensor a = random({300, 64}, 1), b = random({300, 40}, 2);
  const auto run = [&] {
    const auto on = tested();
    Epilogue epilogue;
    epilogue.bias_gradient = on.empty({64});
    on->matmul(on(a), true, on(b), false, epilogue, false, on.empty({64, 40}));
    return testing::values_of(epilogue.bias_gradient);
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace lockstep::kernels
