// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "runtime/kernels/cuda/alignment.h"
#include "runtime/kernels/cuda/backend.h"
#include "runtime/kernels/cuda/matmul_plans.h"
#include "runtime/kernels/cuda/tf32.h"
#include "runtime/kernels/geometry/checks.h"
#include "runtime/tensor/error.h"

namespace lockstep::kernels {

namespace {

/// The bias in the result's dtype, as cuBLASLt's epilogue reads it, and where it takes 16-byte accesses.
Tensor epilogue_bias(Backend& backend, const Tensor& bias, DType dtype) {
  if (!bias.defined() || (bias.dtype() == dtype && cuda::alignment_of(bias) == cuda::kAlignment)) return bias;
  Tensor converted = Tensor::empty(bias.shape(), dtype, bias.device());
  backend.cast(bias, converted);
  return converted;
}

}  // namespace

void CudaBackend::matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, const Tensor& bias,
                         bool accumulate, const Tensor& out) {
  const auto [batch, m, n, k] = checks::matmul(a, transpose_a, b, transpose_b, bias, out);
  if (out.numel() == 0) return;
  const Tensor shift = epilogue_bias(*this, bias, out.dtype());
  if (k == 0) {  // a sum of nothing
    if (!accumulate) fill(out, 0);
    if (shift.defined()) add(out, shift, out);
    return;
  }
  cuda::MatmulProblem problem{.batch = batch,
                              .m = m,
                              .n = n,
                              .k = k,
                              .transpose_a = transpose_a,
                              .transpose_b = transpose_b,
                              .bias = shift.defined(),
                              .operand = a.dtype(),
                              .result = out.dtype(),
                              .tf32 = cuda::tf32(),
                              .alignment_a = cuda::alignment_of(a),
                              .alignment_b = cuda::alignment_of(b),
                              .alignment_out = cuda::alignment_of(out)};
  cuda::MatmulData data{.a = a.data(), .b = b.data(), .out = out.data(), .accumulate = accumulate};
  if (shift.defined()) data.bias = shift.data();
  if (matmuls_->run(problem, data)) return;
  if (problem.bias) {
    // No algorithm adds the bias to this one on the way out: a 16-bit result is rounded once more.
    problem.bias = false;
    data.bias = nullptr;
    if (matmuls_->run(problem, data)) return add(out, shift, out);
  }
  throw EnvironmentError("matmul: cuBLASLt has no algorithm for " + lockstep::describe(a) +
                         (transpose_a ? " (transposed)" : "") + " by " + lockstep::describe(b) +
                         (transpose_b ? " (transposed)" : "") + " to " + lockstep::describe(out));
}

}  // namespace lockstep::kernels
