// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/matmul_problem.h"

#include <fmt/format.h>

namespace lockstep::kernels::cuda {

std::string describe(const MatmulProblem& p) {
  const auto stored = [](bool transposed) { return transposed ? " (stored transposed)" : ""; };
  return fmt::format("[{}, {}]{} by [{}, {}]{}, {} times, of {} to {}", p.m, p.k, stored(p.transpose_a), p.k, p.n,
                     stored(p.transpose_b), p.batch, name_of(p.operand), name_of(p.result));
}

std::string key_of(const MatmulProblem& p) {
  return fmt::format("matmul b{} m{} n{} k{}{}{} {} to {}{}{}{} aligned {} {} {}", p.batch, p.m, p.n, p.k,
                     p.transpose_a ? " ta" : "", p.transpose_b ? " tb" : "", name_of(p.operand), name_of(p.result),
                     p.bias ? " bias" : "", p.bias_gradient ? " bias-gradient" : "", p.tf32 ? " tf32" : "",
                     p.alignment_a, p.alignment_b, p.alignment_out);
}

}  // namespace lockstep::kernels::cuda
