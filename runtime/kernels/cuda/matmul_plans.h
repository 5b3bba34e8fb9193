// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <compare>
#include <cstdint>
#include <memory>

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels::cuda {

/// What cuBLASLt does to a product beside adding the bias. Its gelu is the one with tanh.
enum class MatmulFusion : std::uint8_t {
  kNone,
  kRelu,  ///< max(x, 0); the documentation does not say what becomes of a NaN
  kGeluTanh,
  kGeluTanhKeepingInput,  ///< the input goes to `auxiliary`
  kGeluTanhDerivative,    ///< at `auxiliary`; without a bias
  kBiasGradient,          ///< the sums of op(a)'s rows; a transposed, without a bias
};

/// Everything that cuBLASLt's choice of an algorithm depends on: out[batch, m, n] = op(a)[batch, m, k] op(b)[batch, k,
/// n], all row-major, every extent at least 1.
struct MatmulProblem {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool bias = false;  ///< [n], of the result's dtype and 16-byte aligned
  MatmulFusion fusion = MatmulFusion::kNone;
  DType operand = DType::kFloat32;  ///< of a and b
  DType result = DType::kFloat32;
  bool tf32 = false;
  int alignment_a = 16;  ///< bytes, at most 16: no access is wider
  int alignment_b = 16;
  int alignment_out = 16;

  friend auto operator<=>(const MatmulProblem&, const MatmulProblem&) = default;
};

struct MatmulData {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;
  void* out = nullptr;
  void* auxiliary = nullptr;      ///< like out, 16-byte aligned, n a multiple of 8; written, or only read
  void* bias_gradient = nullptr;  ///< [m], of the result's dtype and 16-byte aligned; written
  bool accumulate = false;
};

/// cuBLASLt on one device, with the algorithms that it chose for the problems it met. Thread-safe.
class MatmulPlans {
 public:
  explicit MatmulPlans(Device device);
  ~MatmulPlans();

  /// Appends the product to the calling thread's current stream of the device and returns true, or returns false where
  /// cuBLASLt has no algorithm for it. Throws ShapeError for other dtypes than float32, float16 and bfloat16.
  bool run(const MatmulProblem& problem, const MatmulData& data);

 private:
  struct State;
  Device device_;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::kernels::cuda
