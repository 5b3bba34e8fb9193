// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/conv_problem.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace lockstep::kernels::cuda {
namespace {

ConvProblem conv_problem() {
  const ConvGeometry geometry{.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 3}, .groups = 2};
  const Shape x{5, 9, 8, 4}, weight{6, 3, 2, 2};
  return {ConvPass::kForward, geometry,      x, weight, conv_output_shape(x, weight, geometry), DType::kFloat16,
          DType::kFloat16,    /*bias=*/false};
}

TEST(ConvProblem, ItsKeyIsOneReadableLine) {
  EXPECT_EQ(
      key_of(conv_problem()),
      "conv forward n5 c4 o6 g2 in 9x8 kernel 3x2 out 5x5 stride 2x1 padding 1x0 dilation 1x3 float16 to float16");
}

TEST(ConvProblem, ProblemsThatDifferAnywhereHaveKeysOfTheirOwn) {
  std::set<std::string> keys{key_of(conv_problem())};
  std::size_t count = 1;
  const auto differ = [&](auto change) {
    ConvProblem other = conv_problem();
    change(other);
    keys.insert(key_of(other));
    EXPECT_EQ(keys.size(), ++count) << key_of(other);
  };
  differ([](ConvProblem& p) { p.pass = ConvPass::kData; });
  differ([](ConvProblem& p) { p.pass = ConvPass::kWeights; });
  differ([](ConvProblem& p) { p.spatial = 3; });
  differ([](ConvProblem& p) { p.images = 6; });
  differ([](ConvProblem& p) { p.channels = 8; });
  differ([](ConvProblem& p) { p.outputs = 8; });
  differ([](ConvProblem& p) { p.groups = 1; });
  for (const std::size_t d : {0, 1}) {
    differ([d](ConvProblem& p) { p.in[d] += 10; });
    differ([d](ConvProblem& p) { p.kernel[d] += 10; });
    differ([d](ConvProblem& p) { p.out[d] += 10; });
    differ([d](ConvProblem& p) { p.stride[d] += 10; });
    differ([d](ConvProblem& p) { p.padding[d] += 10; });
    differ([d](ConvProblem& p) { p.dilation[d] += 10; });
  }
  differ([](ConvProblem& p) { p.dtype = DType::kFloat32; });
  differ([](ConvProblem& p) { p.result = DType::kFloat32; });
  differ([](ConvProblem& p) { p.bias = true; });
  differ([](ConvProblem& p) { p.tf32 = true; });
}

}  // namespace
}  // namespace lockstep::kernels::cuda
