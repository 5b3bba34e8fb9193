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

using cuda::MatmulFusion;

bool aligned(const Tensor& tensor) { return cuda::alignment_of(tensor) == cuda::kAlignment; }

/// The bias in the result's dtype, as cuBLASLt's epilogue reads it, and where it takes 16-byte accesses.
Tensor epilogue_bias(Backend& backend, const Tensor& bias, DType dtype) {
  if (!bias.defined() || (bias.dtype() == dtype && aligned(bias))) return bias;
  Tensor converted = Tensor::empty(bias.shape(), dtype, bias.device());
  backend.cast(bias, converted);
  return converted;
}

cuda::MatmulProblem describe_problem(const checks::MatmulExtents& extents, const Tensor& a, bool transpose_a,
                                     const Tensor& b, bool transpose_b, const Tensor& bias, const Tensor& out) {
  return {.batch = extents.batch,
          .m = extents.m,
          .n = extents.n,
          .k = extents.k,
          .transpose_a = transpose_a,
          .transpose_b = transpose_b,
          .bias = bias.defined(),
          .operand = a.dtype(),
          .result = out.dtype(),
          .tf32 = cuda::tf32(),
          .alignment_a = cuda::alignment_of(a),
          .alignment_b = cuda::alignment_of(b),
          .alignment_out = cuda::alignment_of(out)};
}

cuda::MatmulData describe_data(const Tensor& a, const Tensor& b, const Tensor& bias, bool accumulate,
                               const Tensor& out) {
  cuda::MatmulData data{.a = a.data(), .b = b.data(), .out = out.data(), .accumulate = accumulate};
  if (bias.defined()) data.bias = bias.data();
  return data;
}

/// What cuBLASLt is asked for beside the bias. relu's derivative is not: it reads a bit mask in an order of bits that
/// is not documented, which nobody else could write or read where there is no algorithm; it runs over the product
/// instead.
MatmulFusion fusion_of(const Epilogue& epilogue, const cuda::MatmulProblem& problem) {
  const auto fits = [&](const Tensor& auxiliary) {
    return problem.batch == 1 && problem.n % 8 == 0 && aligned(auxiliary);
  };
  const Tensor& input = epilogue.preactivation;
  if (epilogue.activation == Activation::kRelu && !input.defined()) return MatmulFusion::kRelu;
  if (epilogue.activation == Activation::kGeluTanh) {
    if (!input.defined()) return MatmulFusion::kGeluTanh;
    if (fits(input)) return MatmulFusion::kGeluTanhKeepingInput;
  }
  if (epilogue.derivative == Activation::kGeluTanh && fits(epilogue.derivative_at)) {
    return MatmulFusion::kGeluTanhDerivative;
  }
  const bool plain = epilogue.activation == Activation::kNone && epilogue.derivative == Activation::kNone;
  return epilogue.bias_gradient.defined() && plain && !problem.bias ? MatmulFusion::kBiasGradient : MatmulFusion::kNone;
}

/// Where cuBLASLt puts the gradient of the bias, in the result's dtype: where it belongs, if that will do.
Tensor gradient_buffer(const Epilogue& epilogue, DType dtype) {
  const Tensor& gradient = epilogue.bias_gradient;
  const bool direct = !epilogue.accumulate_bias_gradient && gradient.dtype() == dtype && aligned(gradient);
  return direct ? gradient : Tensor::empty(gradient.shape(), dtype, gradient.device());
}

}  // namespace

/// The product with its bias.
void CudaBackend::multiply(const cuda::MatmulProblem& problem, const cuda::MatmulData& data, const Tensor& bias,
                           const Tensor& out) {
  if (out.numel() == 0) return;
  if (problem.k == 0) {  // a sum of nothing
    if (!data.accumulate) fill(out, 0);
    if (bias.defined()) add(out, bias, out);
    return;
  }
  if (matmuls_->run(problem, data)) return;
  if (problem.bias) {
    // No algorithm adds the bias to this one on the way out: a 16-bit result is rounded once more.
    cuda::MatmulProblem plain = problem;
    plain.bias = false;
    if (matmuls_->run(plain, data)) return add(out, bias, out);
  }
  throw EnvironmentError("matmul: cuBLASLt has no algorithm for [" + std::to_string(problem.m) + ", " +
                         std::to_string(problem.k) + "]" + (problem.transpose_a ? " (stored transposed)" : "") +
                         " by [" + std::to_string(problem.k) + ", " + std::to_string(problem.n) + "]" +
                         (problem.transpose_b ? " (stored transposed)" : "") + " of " +
                         std::string(name_of(problem.operand)) + " to " + std::string(name_of(problem.result)));
}

void CudaBackend::matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, const Epilogue& epilogue,
                         bool accumulate_to_out, const Tensor& out) {
  const checks::MatmulExtents extents =
      checks::matmul(a, transpose_a, b, transpose_b, epilogue, accumulate_to_out, out);
  const Tensor bias = epilogue_bias(*this, epilogue.bias, out.dtype());
  cuda::MatmulProblem problem = describe_problem(extents, a, transpose_a, b, transpose_b, bias, out);
  cuda::MatmulData data = describe_data(a, b, bias, accumulate_to_out, out);

  problem.fusion = fusion_of(epilogue, problem);
  Tensor sums;
  if (problem.fusion == MatmulFusion::kGeluTanhKeepingInput) data.auxiliary = epilogue.preactivation.data();
  if (problem.fusion == MatmulFusion::kGeluTanhDerivative) data.auxiliary = epilogue.derivative_at.data();
  if (problem.fusion == MatmulFusion::kBiasGradient) {
    sums = gradient_buffer(epilogue, out.dtype());
    data.bias_gradient = sums.data();
  }
  const bool possible = problem.fusion != MatmulFusion::kNone && out.numel() > 0 && extents.k > 0;
  const bool fused = possible && matmuls_->run(problem, data);
  if (!fused) {
    // The product passes through memory: where z is kept, or where the result will lie.
    const Tensor& product = epilogue.preactivation.defined() ? epilogue.preactivation : out;
    problem.fusion = MatmulFusion::kNone;
    problem.alignment_out = cuda::alignment_of(product);
    multiply(problem, describe_data(a, b, bias, accumulate_to_out, product), bias, product);
    if (epilogue.activation != Activation::kNone) activate(epilogue.activation, product, out);
    if (epilogue.derivative != Activation::kNone) {
      activate_backward(epilogue.derivative, epilogue.derivative_at, out, out);
    }
  }

  const Tensor& gradient = epilogue.bias_gradient;
  if (!gradient.defined()) return;
  if (!fused || !sums.defined()) return sum_rows(a, epilogue.accumulate_bias_gradient, gradient);
  if (epilogue.accumulate_bias_gradient) return accumulate(sums, gradient);
  if (!sums.is(gradient)) cast(sums, gradient);
}

}  // namespace lockstep::kernels
