// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "runtime/kernels/cuda/alignment.h"
#include "runtime/kernels/cuda/device_state.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/matmul_plans.h"
#include "runtime/kernels/cuda/tf32.h"
#include "runtime/kernels/geometry/checks.h"
#include "runtime/tensor/error.h"

namespace lockstep::kernels::cuda {

namespace {

bool aligned(const Tensor& tensor) { return alignment_of(tensor) == kAlignment; }

/// The bias in the result's dtype, as cuBLASLt's epilogue reads it, and where it takes 16-byte accesses.
Tensor epilogue_bias(const Tensor& bias, DType dtype) {
  if (!bias.defined() || (bias.dtype() == dtype && aligned(bias))) return bias;
  Tensor converted = Tensor::empty(bias.shape(), dtype, bias.device());
  kElementwise.cast(bias, converted);
  return converted;
}

MatmulProblem describe_problem(const checks::MatmulExtents& extents, const Tensor& a, bool transpose_a, const Tensor& b,
                               bool transpose_b, const Tensor& bias, const Tensor& out) {
  return {.batch = extents.batch,
          .m = extents.m,
          .n = extents.n,
          .k = extents.k,
          .transpose_a = transpose_a,
          .transpose_b = transpose_b,
          .bias = bias.defined(),
          .operand = a.dtype(),
          .result = out.dtype(),
          .tf32 = tf32(),
          .alignment_a = alignment_of(a),
          .alignment_b = alignment_of(b),
          .alignment_out = alignment_of(out)};
}

MatmulData describe_data(const Tensor& a, const Tensor& b, const Tensor& bias, bool accumulate, const Tensor& out) {
  MatmulData data{.a = a.data(), .b = b.data(), .out = out.data(), .accumulate = accumulate};
  if (bias.defined()) data.bias = bias.data();
  return data;
}

/// What cuBLASLt is asked for beside the bias. relu's derivative is not: it reads a bit mask in an order of bits that
/// is not documented, which nobody else could write or read where there is no algorithm; it runs over the product
/// instead.
MatmulFusion fusion_of(const Epilogue& epilogue, const MatmulProblem& problem) {
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

/// The product with its bias.
void run_product(MatmulPlans& plans, const MatmulProblem& problem, const MatmulData& data, const Tensor& bias,
                 const Tensor& out) {
  if (out.numel() == 0) return;
  if (problem.k == 0) {  // a sum of nothing
    if (!data.accumulate) kElementwise.fill(out, 0);
    if (bias.defined()) kElementwise.add(out, bias, out);
    return;
  }
  if (plans.run(problem, data)) return;
  if (problem.bias) {
    // No algorithm adds the bias to this one on the way out: a 16-bit result is rounded once more.
    MatmulProblem plain = problem;
    plain.bias = false;
    if (plans.run(plain, data)) return kElementwise.add(out, bias, out);
  }
  throw EnvironmentError("matmul: cuBLASLt has no algorithm for [" + std::to_string(problem.m) + ", " +
                         std::to_string(problem.k) + "]" + (problem.transpose_a ? " (stored transposed)" : "") +
                         " by [" + std::to_string(problem.k) + ", " + std::to_string(problem.n) + "]" +
                         (problem.transpose_b ? " (stored transposed)" : "") + " of " +
                         std::string(name_of(problem.operand)) + " to " + std::string(name_of(problem.result)));
}

void matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, const Epilogue& epilogue,
            bool accumulate_to_out, const Tensor& out) {
  const checks::MatmulExtents extents =
      checks::matmul(a, transpose_a, b, transpose_b, epilogue, accumulate_to_out, out);
  const Tensor bias = epilogue_bias(epilogue.bias, out.dtype());
  MatmulProblem problem = describe_problem(extents, a, transpose_a, b, transpose_b, bias, out);
  MatmulData data = describe_data(a, b, bias, accumulate_to_out, out);

  problem.fusion = fusion_of(epilogue, problem);
  Tensor sums;
  if (problem.fusion == MatmulFusion::kGeluTanhKeepingInput) data.auxiliary = epilogue.preactivation.data();
  if (problem.fusion == MatmulFusion::kGeluTanhDerivative) data.auxiliary = epilogue.derivative_at.data();
  if (problem.fusion == MatmulFusion::kBiasGradient) {
    sums = gradient_buffer(epilogue, out.dtype());
    data.bias_gradient = sums.data();
  }
  const bool possible = problem.fusion != MatmulFusion::kNone && out.numel() > 0 && extents.k > 0;
  MatmulPlans& plans = state_of(out.device()).matmuls;
  const bool fused = possible && plans.run(problem, data);
  if (!fused) {
    // The product passes through memory: where z is kept, or where the result will lie.
    const Tensor& product = epilogue.preactivation.defined() ? epilogue.preactivation : out;
    problem.fusion = MatmulFusion::kNone;
    problem.alignment_out = alignment_of(product);
    run_product(plans, problem, describe_data(a, b, bias, accumulate_to_out, product), bias, product);
    if (epilogue.activation != Activation::kNone) kPointwise.activate(epilogue.activation, product, out);
    if (epilogue.derivative != Activation::kNone) {
      kPointwise.activate_backward(epilogue.derivative, epilogue.derivative_at, out, out);
    }
  }

  const Tensor& gradient = epilogue.bias_gradient;
  if (!gradient.defined()) return;
  if (!fused || !sums.defined()) return kReductions.sum_rows(a, epilogue.accumulate_bias_gradient, gradient);
  if (epilogue.accumulate_bias_gradient) return kElementwise.accumulate(sums, gradient);
  if (!sums.is(gradient)) kElementwise.cast(sums, gradient);
}

}  // namespace

const MatrixProducts kMatrixProducts{.matmul = matmul};

}  // namespace lockstep::kernels::cuda
