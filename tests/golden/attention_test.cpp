// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/engine.h"
#include "runtime/ops/ops.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::kernels {
namespace {

class GoldenAttention : public GoldenTest {};
INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenAttention, ::testing::ValuesIn(kComputers), name_of_computer);

TEST_P(GoldenAttention, ResultsAndBothGradientsArePyTorchs) {
  const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
  for_each_case(
      "attention",
      [&](const json& stored) {
        const std::vector<Tensor> inputs{read(stored["q"]), read(stored["k"]), read(stored["v"])};
        const Tensor dy = read(stored["dy"]);
        for (const Tensor& input : inputs) input.set_requires_grad(true);
        ops::AttentionOptions options{.causal = stored["causal"]};
        if (stored.contains("mask")) {
          options.mask = stored["mask_is_bool"] ? read(stored["mask"], DType::kBool) : read(stored["mask"]);
        }
        if (stored.contains("scale")) options.scale = stored["scale"].get<double>();
        const auto run = [&] { return ops::scaled_dot_product_attention(inputs[0], inputs[1], inputs[2], options); };
        const Tensor y = run();
        const Sums sums{std::max(inputs[0].size(-2), inputs[1].size(-2)) + inputs[0].size(-1)};
        expect(y, stored["y"], sums);
        const std::vector<Tensor> first = autograd::grad(y, inputs, dy);
        for (std::size_t i = 0; i < 3; ++i) expect(first[i], stored["first"][i], sums);
        if (!stored.contains("second")) return;

        dy.set_requires_grad(true);
        const std::vector<Tensor> recorded = autograd::grad(run(), inputs, dy, {.create_graph = true});
        const Tensor all = ops::add(ops::add(ops::sum(recorded[0]), ops::sum(recorded[1])), ops::sum(recorded[2]));
        const std::vector<Tensor> second = autograd::grad(all, {inputs[0], inputs[1], inputs[2], dy});
        for (std::size_t i = 0; i < 4; ++i) expect(second[i], stored["second"][i], sums.twice());
      },
      "attention");
}

}  // namespace
}  // namespace lockstep::kernels
