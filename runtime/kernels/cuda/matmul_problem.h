// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "runtime/tensor/dtype.h"

namespace lockstep::kernels::cuda {

/// Everything that cuBLASLt's choice of an algorithm depends on: out[batch, m, n] = op(a)[batch, m, k] op(b)[batch, k,
/// n], all row-major, every extent at least 1. Not whether the product is added to `out`: neither the ranking nor the
/// check of an algorithm is told beta, no capability names it, and reading `out` costs every algorithm the same.
struct MatmulProblem {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool bias = false;                ///< [n], of the result's dtype and 16-byte aligned
  bool bias_gradient = false;       ///< the sums of op(a)'s rows too; a transposed, without a bias
  DType operand = DType::kFloat32;  ///< of a and b
  DType result = DType::kFloat32;
  bool tf32 = false;
  /// The alignments of the first elements, in bytes: kFullAlignment at most. An algorithm may need the one that it was
  /// chosen for.
  int alignment_a = 256;
  int alignment_b = 256;
  int alignment_out = 256;

  friend auto operator<=>(const MatmulProblem&, const MatmulProblem&) = default;
};

/// "[64, 784] by [784, 512] (stored transposed), 1 times, of float16 to float16", for messages.
std::string describe(const MatmulProblem& problem);

/// The whole problem in one line of text, which no other problem has.
std::string key_of(const MatmulProblem& problem);

}  // namespace lockstep::kernels::cuda
