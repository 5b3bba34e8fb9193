// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/backend.h"
#include "runtime/tensor/device_value.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::kernels {
namespace {

/// Weights are float32 on every computer.
class GoldenOptimizers : public GoldenTest {
 protected:
  /// Runs the case's steps; step(slice, scalars) takes each of them.
  template <class Step>
  void follow(const json& stored, Step step) const {
    const json& options = stored["options"];
    const Tensor master = read(stored["weight"], DType::kFloat32);
    const std::vector<ArenaSegment> segments = {{0, master.numel(), 1.0f, options.value("weight_decay", 0.0f)}};
    const DeviceValue<float> learning_rate(options["lr"].get<float>(), device()), one(1.0f, device()),
        zero(0.0f, device());
    const DeviceValue<std::int64_t> applied(0, device());
    for (const json& expected : stored["steps"]) {
      const ArenaSlice slice{.master = master, .grad = read(expected["grad"], DType::kFloat32), .segments = segments};
      step(slice, StepScalars{.inverse_scale = one.data(),
                              .found_inf = zero.data(),
                              .learning_rate = learning_rate.data(),
                              .steps = applied.data()});
      applied.write(*applied + 1);
      testing::expect_close(master, tensor_in(expected["weight"], DType::kFloat64), {1e-6, 1e-6});
    }
  }
};
INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenOptimizers, ::testing::ValuesIn(kComputers), name_of_computer);

TEST_P(GoldenOptimizers, SgdIsPyTorchs) {
  for_each_case("sgd", [&](const json& stored) {
    const json& given = stored["options"];
    const SgdRule options{.momentum = given.value("momentum", 0.0f),
                          .dampening = given.value("dampening", 0.0f),
                          .nesterov = given.value("nesterov", false)};
    // PyTorch's buffer starts as the first gradient, whatever lies here.
    const Tensor momentum = testing::random_tensor({4}, DType::kFloat32, 1).to(device());
    follow(stored, [&](const ArenaSlice& slice, const StepScalars& scalars) {
      backend().element_step(slice, options, scalars,
                             options.momentum != 0 ? std::vector{momentum} : std::vector<Tensor>());
    });
  });
}

TEST_P(GoldenOptimizers, AdamIsPyTorchs) {
  for_each_case("adam", [&](const json& stored) {
    const AdamRule options{.decoupled = &stored == &golden()["adam"]["adamw"]};
    const Tensor m = Tensor::zeros({4}, DType::kFloat32, device()), v = Tensor::zeros({4}, DType::kFloat32, device());
    follow(stored, [&](const ArenaSlice& slice, const StepScalars& scalars) {
      backend().element_step(slice, options, scalars, {m, v});
    });
  });
}

}  // namespace
}  // namespace lockstep::kernels
