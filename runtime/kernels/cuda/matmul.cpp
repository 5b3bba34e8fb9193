// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/matmul.h"

#include <string>

#include "runtime/base/error.h"
#include "runtime/kernels/cuda/alignment.h"
#include "runtime/kernels/cuda/device_state.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/matmul_plans.h"
#include "runtime/kernels/cuda/tf32.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/pointwise.h"
#include "runtime/kernels/reductions.h"
#include "runtime/tensor/memory.h"

namespace lockstep::kernels::cuda {

namespace {

/// The bias in the result's dtype, as cuBLASLt's epilogue reads it, and where it takes 16-byte accesses.
Tensor epilogue_bias(const Tensor& bias, DType dtype) {
  if (!bias.defined() || (bias.dtype() == dtype && is_aligned(bias))) return bias;
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
          .alignment_a = alignment_of(a, kFullAlignment),
          .alignment_b = alignment_of(b, kFullAlignment),
          .alignment_out = alignment_of(out, kFullAlignment)};
}

MatmulData describe_data(const Tensor& a, const Tensor& b, const Tensor& bias, bool accumulate, const Tensor& out) {
  MatmulData data{.a = a.data(), .b = b.data(), .out = out.data(), .accumulate = accumulate};
  if (bias.defined()) data.bias = bias.data();
  return data;
}

/// Whether cuBLASLt sums op(a)'s rows on the way: it writes the result's dtype, which would round a wider gradient.
bool takes_bias_gradient(const Epilogue& epilogue, const MatmulProblem& problem) {
  const bool plain = epilogue.activation == Activation::kNone && epilogue.derivative == Activation::kNone;
  return epilogue.bias_gradient.defined() && epilogue.bias_gradient.dtype() == problem.result && plain && !problem.bias;
}

/// Where cuBLASLt puts the gradient of the bias: where it belongs, if that will do.
Tensor gradient_buffer(const Epilogue& epilogue) {
  const Tensor& gradient = epilogue.bias_gradient;
  const bool direct = !epilogue.accumulate_bias_gradient && is_aligned(gradient);
  return direct ? gradient : Tensor::empty(gradient.shape(), gradient.dtype(), gradient.device());
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
  throw EnvironmentError("matmul: cuBLASLt has no algorithm for " + describe(problem));
}

/// Whether cuBLASLt is to sum op(a)'s rows: `problem` has the gradient of a bias.
bool sums_together(DeviceState& state, const MatmulProblem& problem, const MatmulData& data, const Tensor& a,
                   const Epilogue& epilogue, const Tensor& out) {
  return state.bias_gradients.together(problem, [&] {
    const MemoryScope scope(MemoryPurpose::kWorkspaces);
    const Tensor product = Tensor::empty(out.shape(), out.dtype(), out.device());
    const Tensor sums = Tensor::empty(epilogue.bias_gradient.shape(), out.dtype(), out.device());
    MatmulData timed = data;
    timed.out = product.data();
    timed.bias_gradient = sums.data();
    timed.accumulate = false;
    MatmulProblem plain = problem;
    plain.bias_gradient = false;
    return BiasGradientChoice::Ways{
        .together = [&state, problem, timed, product, sums] { return state.matmuls.run(problem, timed); },
        .apart =
            [&state, &a, plain, timed, product, sums] {
              run_product(state.matmuls, plain, timed, {}, product);
              kReductions.sum_rows(a, false, sums);
            }};
  });
}

void matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, const Epilogue& epilogue,
            bool accumulate_to_out, const Tensor& out) {
  const checks::MatmulExtents extents =
      checks::matmul(a, transpose_a, b, transpose_b, epilogue, accumulate_to_out, out);
  const Tensor bias = epilogue_bias(epilogue.bias, out.dtype());
  // The product passes through memory before an activation or a derivative: where z is kept, or where the result lies.
  const Tensor& product = epilogue.preactivation.defined() ? epilogue.preactivation : out;
  MatmulProblem problem = describe_problem(extents, a, transpose_a, b, transpose_b, bias, product);
  MatmulData data = describe_data(a, b, bias, accumulate_to_out, product);
  DeviceState& state = state_of(out.device());
  MatmulPlans& plans = state.matmuls;

  Tensor sums;
  if (takes_bias_gradient(epilogue, problem) && out.numel() > 0 && extents.k > 0) {
    problem.bias_gradient = true;
    if (sums_together(state, problem, data, a, epilogue, out)) {
      sums = gradient_buffer(epilogue);
      data.bias_gradient = sums.data();
      if (!plans.run(problem, data)) sums = {};
      data.bias_gradient = nullptr;
    }
    problem.bias_gradient = false;
  }
  if (!sums.defined()) run_product(plans, problem, data, bias, product);
  if (epilogue.activation != Activation::kNone) kPointwise.activate(epilogue.activation, product, out);
  if (epilogue.derivative != Activation::kNone) {
    kPointwise.activate_backward(epilogue.derivative, epilogue.derivative_at, out, out);
  }

  const Tensor& gradient = epilogue.bias_gradient;
  if (!gradient.defined()) return;
  if (!sums.defined()) return kReductions.sum_rows(a, epilogue.accumulate_bias_gradient, gradient);
  if (epilogue.accumulate_bias_gradient) return kElementwise.accumulate(sums, gradient);
  if (!sums.is(gradient)) kElementwise.cast(sums, gradient);
}

}  // namespace

const MatrixProducts kMatrixProducts{.matmul = matmul};

}  // namespace lockstep::kernels::cuda
