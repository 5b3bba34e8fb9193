// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels::cuda {

/// Everything that cuBLASLt's choice of an algorithm depends on: out[batch, m, n] = op(a)[batch, m, k] op(b)[batch, k,
/// n], all row-major, every extent at least 1.
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
  /// Of the first elements, in bytes: kFullAlignment at most. An algorithm may need what it was chosen for.
  int alignment_a = 256;
  int alignment_b = 256;
  int alignment_out = 256;

  friend auto operator<=>(const MatmulProblem&, const MatmulProblem&) = default;
};

/// "[64, 784] by [784, 512] (stored transposed), 1 times, of float16 to float16", for messages.
std::string describe(const MatmulProblem& problem);

struct MatmulData {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;
  void* out = nullptr;
  void* bias_gradient = nullptr;  ///< [m], of the result's dtype and 16-byte aligned; written
  bool accumulate = false;
};

/// cuBLASLt on one device, with the algorithms that it chose for the problems it met: several each, the next where one
/// is refused when it is to run. Thread-safe.
class MatmulPlans {
 public:
  explicit MatmulPlans(Device device);
  ~MatmulPlans();

  /// Appends the product to the calling thread's current stream of the device and returns true, or returns false where
  /// cuBLASLt has no algorithm for it that runs. Throws ShapeError for other dtypes than float32, float16 and bfloat16.
  bool run(const MatmulProblem& problem, const MatmulData& data);

 private:
  struct State;
  Device device_;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::kernels::cuda
