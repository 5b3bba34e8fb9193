// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/matmul_problem.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace lockstep::kernels::cuda {
namespace {

MatmulProblem matmul_problem() {
  return {.batch = 2, .m = 64, .n = 512, .k = 784, .operand = DType::kFloat16, .result = DType::kFloat16};
}

TEST(MatmulProblem, ItsKeyIsOneReadableLine) {
  EXPECT_EQ(key_of(matmul_problem()), "matmul b2 m64 n512 k784 float16 to float16 aligned 256 256 256");
  MatmulProblem gradient = matmul_problem();
  gradient.transpose_a = true;
  gradient.bias_gradient = true;
  EXPECT_EQ(key_of(gradient), "matmul b2 m64 n512 k784 ta float16 to float16 bias-gradient aligned 256 256 256");
}

TEST(MatmulProblem, ProblemsThatDifferAnywhereHaveKeysOfTheirOwn) {
  std::set<std::string> keys{key_of(matmul_problem())};
  std::size_t count = 1;
  const auto differ = [&](auto change) {
    MatmulProblem other = matmul_problem();
    change(other);
    keys.insert(key_of(other));
    EXPECT_EQ(keys.size(), ++count) << key_of(other);
  };
  differ([](MatmulProblem& p) { p.batch = 1; });
  differ([](MatmulProblem& p) { p.m = 65; });
  differ([](MatmulProblem& p) { p.n = 65; });
  differ([](MatmulProblem& p) { p.k = 65; });
  differ([](MatmulProblem& p) { p.transpose_a = true; });
  differ([](MatmulProblem& p) { p.transpose_b = true; });
  differ([](MatmulProblem& p) { p.bias = true; });
  differ([](MatmulProblem& p) { p.bias_gradient = true; });
  differ([](MatmulProblem& p) { p.operand = DType::kBFloat16; });
  differ([](MatmulProblem& p) { p.result = DType::kFloat32; });
  differ([](MatmulProblem& p) { p.tf32 = true; });
  differ([](MatmulProblem& p) { p.alignment_a = 16; });
  differ([](MatmulProblem& p) { p.alignment_b = 16; });
  differ([](MatmulProblem& p) { p.alignment_out = 16; });
}

}  // namespace
}  // namespace lockstep::kernels::cuda
