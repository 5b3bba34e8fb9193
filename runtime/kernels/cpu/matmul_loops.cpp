// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/matmul_loops.h"

#include "runtime/kernels/cpu/products.h"

namespace lockstep::kernels::cpu {

namespace {

/// Matrix `index` of a tensor.
StridedMatrix matrix_of(const Tensor& tensor, bool transpose, std::int64_t index) {
  const std::int64_t width = tensor.size(-1);
  const float* const data = static_cast<const float*>(tensor.data()) + index * tensor.size(-2) * width;
  return transpose ? StridedMatrix{data, 1, width} : StridedMatrix{data, width, 1};
}

}  // namespace

void matmul_by_loops(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, const Tensor& bias, bool add,
                     const Tensor& out) {
  const std::int64_t rows = out.size(-2);
  const std::int64_t width = out.size(-1);
  const float* const shift = bias.defined() ? static_cast<const float*>(bias.data()) : nullptr;
  float* const result = static_cast<float*>(out.data());
  multiply(
      {out.numel() / (rows * width), rows, width, a.size(transpose_a ? -2 : -1)},
      [&](std::int64_t product, std::int64_t row, std::int64_t, std::int64_t term, std::int64_t, float*) {
        return matrix_of(a, transpose_a, product).at(row, term);
      },
      [&](std::int64_t product, std::int64_t term, std::int64_t terms, std::int64_t column, std::int64_t columns,
          float* strips) { pack_strips(matrix_of(b, transpose_b, product).at(term, column), terms, columns, strips); },
      [&](std::int64_t product, std::int64_t row, std::int64_t column, std::int64_t columns, const float* sums) {
        float* const to = result + (product * rows + row) * width + column;
        for (std::int64_t c = 0; c < columns; ++c) {
          to[c] = (add ? to[c] : 0.0f) + sums[c] + (shift == nullptr ? 0.0f : shift[column + c]);
        }
      });
}

}  // namespace lockstep::kernels::cpu
