// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "runtime/ops/dims.h"
#include "runtime/tensor/tensor.h"

// Products of vectors, matrices and batches of them, made of matmul. Wrong shapes throw ShapeError.

namespace lockstep::ops {

/// a [M, K] b [K, N] -> [M, N]
[[nodiscard]] Tensor mm(const Tensor& a, const Tensor& b);
/// a [B, M, K] b [B, K, N] -> [B, M, N]
[[nodiscard]] Tensor bmm(const Tensor& a, const Tensor& b);
/// a [M, K] v [K] -> [M]
[[nodiscard]] Tensor mv(const Tensor& a, const Tensor& v);
/// The scalar product of a [K] and b [K], a scalar.
[[nodiscard]] Tensor dot(const Tensor& a, const Tensor& b);
/// dot(a, b): numbers are real, so there is nothing to conjugate.
[[nodiscard]] Tensor vdot(const Tensor& a, const Tensor& b);
/// y[..., o] = sum_ij a[..., i] weight[o, i, j] b[..., j] + bias[o]; the bias may be undefined.
[[nodiscard]] Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight, const Tensor& bias = {});
/// The sums of a * b, broadcast, over a dimension.
[[nodiscard]] Tensor vecdot(const Tensor& a, const Tensor& b, int dim = -1);

/// The factors of the summands of the add... operations. A beta of 0 leaves the input out, NaN included. Sums of 16-bit
/// operands are float32 and rounded once.
struct AddOptions {
  double beta = 1;   ///< of the input
  double alpha = 1;  ///< of the product
};
/// beta * input + alpha * a b; the input is broadcast to the product's shape.
[[nodiscard]] Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, const AddOptions& options = {});
/// beta * input [M] + alpha * a [M, K] v [K]
[[nodiscard]] Tensor addmv(const Tensor& input, const Tensor& a, const Tensor& v, const AddOptions& options = {});
/// beta * input [M, N] + alpha * u [M] v [N]^T
[[nodiscard]] Tensor addr(const Tensor& input, const Tensor& u, const Tensor& v, const AddOptions& options = {});
/// beta * input [M, N] + alpha * the sum over the batch of a [B, M, K] b [B, K, N]
[[nodiscard]] Tensor addbmm(const Tensor& input, const Tensor& a, const Tensor& b, const AddOptions& options = {});
/// beta * input [B, M, N] + alpha * a [B, M, K] b [B, K, N]
[[nodiscard]] Tensor baddbmm(const Tensor& input, const Tensor& a, const Tensor& b, const AddOptions& options = {});

/// The product of all matrices, in the order of the fewest multiplications. The first one may be a row [K] and the last
/// one a column [K], whose dimension is then missing in the result. (Cormen, Leiserson, Rivest, Stein: Introduction to
/// Algorithms, matrix-chain multiplication.)
[[nodiscard]] Tensor chain_matmul(const std::vector<Tensor>& matrices);

/// Sums of products by labels, PyTorch's of two operands, as "bij,bjk->bik": a letter names a dimension of a and b;
/// those that the result does not name are summed over. A letter twice in one operand names its diagonal. "..." stands
/// for the dimensions that have no letter; they are broadcast, the last ones of a and b with each other. Without "->"
/// the result has those of the ellipsis and then the letters that occur once, in alphabetical order. A letter has one
/// extent; 1 is broadcast. Throws UsageError for what is no such equation.
[[nodiscard]] Tensor einsum(std::string_view equation, const Tensor& a, const Tensor& b);
/// einsum() of any number of operands. They are contracted from the left, so their order decides the cost. A lone
/// operand is summed over the dimensions that the result does not name, and permuted.
[[nodiscard]] Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);
/// The vector product of a and b, broadcast, along a dimension of extent 3.
[[nodiscard]] Tensor cross(const Tensor& a, const Tensor& b, int dim = -1);
/// Sums over dimensions of a paired with dimensions of b; the result has a's others, then b's.
[[nodiscard]] Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& dims_of_a, const Dims& dims_of_b);
/// tensordot() over the last `dims` dimensions of a and the first `dims` of b, in their order.
[[nodiscard]] Tensor tensordot(const Tensor& a, const Tensor& b, int dims = 2);

}  // namespace lockstep::ops
