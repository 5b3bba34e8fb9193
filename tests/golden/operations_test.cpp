// SPDX-License-Identifier: Apache-2.0
// Operations that are made of several kernels, gradients included.
#include "runtime/autograd/engine.h"
#include "runtime/ops/conv.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::kernels {
namespace {

class GoldenOperations : public GoldenTest {};
INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenOperations, ::testing::ValuesIn(kComputers), name_of_computer);

TEST_P(GoldenOperations, TransposedConvolutionIsPyTorchs) {
  const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
  for_each_case("conv_transpose", [&](const json& stored) {
    const Tensor x = read(stored["x"]), weight = read(stored["weight"]), bias = read(stored["bias"]);
    for (const Tensor& input : {x, weight, bias}) input.set_requires_grad(true);
    const Tensor y = ops::conv_transpose(x, weight, bias, conv_geometry(stored), extents(stored["output_padding"], 0));
    // A sum over channels and the weight's positions, or over those of the result.
    const Sums sums{std::max(weight.numel() / weight.size(0), y.shape().rows())};
    expect(y, stored["y"], sums);
    const std::vector<Tensor> gradients = autograd::grad(y, {x, weight, bias}, read(stored["dy"]));
    expect(gradients[0], stored["dx"], sums);
    expect(gradients[1], stored["dweight"], sums);
    expect(gradients[2], stored["dbias"], sums);
  });
}

}  // namespace
}  // namespace lockstep::kernels
