// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "runtime/ops/dims.h"
#include "runtime/tensor/tensor.h"

// Lengths of vectors and matrices, and functions of them. A named dtype is the result's, whatever autocast says; x is
// read as that dtype.

namespace lockstep::ops {

struct NormOptions {
  bool keepdim = false;
  std::optional<DType> dtype = {};
};

/// (sum |x|^order)^(1 / order) over the dimensions; an empty list names all. Order infinity is the largest |x|,
/// -infinity the smallest, 0 the number of elements other than 0, which has no gradient. Where all x are 0 the
/// gradient of a positive order is 0.
[[nodiscard]] Tensor vector_norm(const Tensor& x, double order = 2, const Dims& dims = {},
                                 const NormOptions& options = {});

/// x with each of its parts along a dimension, x(i) for every place i there, that is longer than `longest` by
/// vector_norm(order) scaled to that length.
[[nodiscard]] Tensor renorm(const Tensor& x, double order, int dim, double longest);

/// The norms of matrices. The norm of 2, the largest singular value, and the nuclear norm are missing: they need a
/// decomposition.
enum class MatrixNorm : std::uint8_t {
  kFrobenius,  ///< the root of the sum of squares
  kOne,        ///< the largest sum of |x| of a column
  kInfinity,   ///< the largest sum of |x| of a row
};
/// The norms of the matrices in the last two dimensions.
[[nodiscard]] Tensor matrix_norm(const Tensor& x, MatrixNorm norm = MatrixNorm::kFrobenius,
                                 const NormOptions& options = {});

/// a / max(|a|, epsilon) times b / max(|b|, epsilon), summed over a dimension; broadcast.
[[nodiscard]] Tensor cosine_similarity(const Tensor& a, const Tensor& b, int dim = 1, double epsilon = 1e-8);

/// log sum e^x over the dimensions, without overflow; -infinity of no elements.
[[nodiscard]] Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim = false);

}  // namespace lockstep::ops
