// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/matmul.h"

#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reductions.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/unary.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

void matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, const Epilogue& epilogue,
            bool accumulate, const Tensor& out) {
  const auto [batch, m, n, k] = checks::matmul(a, transpose_a, b, transpose_b, epilogue, accumulate, out);
  const Values left = load(a);
  const Values right = load(b);
  const Values shift = epilogue.bias.defined() ? load(epilogue.bias) : Values(static_cast<std::size_t>(n), 0.0);
  Values result = load_if(accumulate, out);
  const auto at = [](std::int64_t index) { return static_cast<std::size_t>(index); };
  for (std::int64_t image = 0; image < batch; ++image) {
    for (std::int64_t row = 0; row < m; ++row) {
      for (std::int64_t column = 0; column < n; ++column) {
        double sum = shift[at(column)];
        for (std::int64_t inner = 0; inner < k; ++inner) {
          const std::int64_t i = transpose_a ? inner * m + row : row * k + inner;
          const std::int64_t j = transpose_b ? column * k + inner : inner * n + column;
          sum += left[at(image * m * k + i)] * right[at(image * k * n + j)];
        }
        result[at((image * m + row) * n + column)] += sum;
      }
    }
  }
  if (epilogue.bias_gradient.defined()) {
    kReductions.sum_rows(a, epilogue.accumulate_bias_gradient, epilogue.bias_gradient);
  }
  if (epilogue.preactivation.defined()) store(result, epilogue.preactivation);
  const Values derivative_at = epilogue.derivative_at.defined() ? load(epilogue.derivative_at) : Values();
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = unary(unary_of(epilogue.activation), result[i]);
    if (epilogue.derivative != Activation::kNone)
      result[i] *= unary_derivative(unary_of(epilogue.derivative), derivative_at[i]);
  }
  store(result, out);
}

}  // namespace

const MatrixProducts kMatrixProducts{.matmul = matmul};

}  // namespace lockstep::kernels::reference
