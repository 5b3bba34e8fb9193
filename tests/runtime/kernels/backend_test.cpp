// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/backend.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/error.h"

namespace lockstep::kernels {
namespace {

TEST(Backend, AScopedBackendHoldsOnItsThreadUntilItEnds) {
  const Backend& usual = backend(kCpu);
  {
    const ScopedBackend reference(reference_backend());
    EXPECT_EQ(&backend(kCpu), &reference_backend());
    std::thread([&] { EXPECT_EQ(&backend(kCpu), &usual); }).join();
    {
      const ScopedBackend inner(usual);
      EXPECT_EQ(&backend(kCpu), &usual);
    }
    EXPECT_EQ(&backend(kCpu), &reference_backend());
  }
  EXPECT_EQ(&backend(kCpu), &usual);
}

/// Says that it lies on a GPU.
Tensor elsewhere(const Shape& shape, DType dtype = DType::kFloat32) {
  static double memory[64];
  return Tensor::view(Storage(memory, sizeof memory, {DeviceType::kCuda, 1}, nullptr), 0, shape, dtype);
}

TEST(Backend, TensorsOnSeveralDevicesAreNamedWithBoth) {
  const auto here = [](const Shape& shape, DType dtype = DType::kFloat32) { return Tensor::zeros(shape, dtype); };
  struct Case {
    const char* message;
    std::function<void(const Backend&)> call;
  };
  const ArenaSegment all{0, 4};
  const float value = 0;
  const std::int64_t steps = 1;
  const StepScalars scalars{
      .inverse_scale = &value, .found_inf = &value, .learning_rate = &value, .has_gradient = &value, .steps = &steps};
  const std::vector<Case> cases{
      {"cast: out must lie on cpu like in, found float32 [2] on cuda:1",
       [&](const Backend& b) { b.cast(here({2}), elsewhere({2})); }},
      {"add: b must lie on cpu like a, found float32 [3] on cuda:1",
       [&](const Backend& b) {
         b.add(here({2, 3}), elsewhere({3}), here({2, 3}));
       }},
      {"matmul: bias must lie on cpu like a",
       [&](const Backend& b) {
         b.matmul(here({2, 3}), false, here({3, 4}), false, elsewhere({4}), false, here({2, 4}));
       }},
      {"conv_forward: weight must lie on cpu like x",
       [&](const Backend& b) {
         b.conv_forward({}, here({1, 2, 2, 1}), elsewhere({1, 1, 1, 1}), {}, here({1, 2, 2, 1}));
       }},
      {"conv_backward: dweight must lie on cpu like x",
       [&](const Backend& b) {
         b.conv_backward({}, here({1, 2, 2, 1}), here({1, 1, 1, 1}), here({1, 2, 2, 1}), {}, elsewhere({1, 1, 1, 1}),
                         {}, false);
       }},
      {"cross_entropy: targets must lie on cpu like logits",
       [&](const Backend& b) {
         b.cross_entropy(here({2, 3}), {elsewhere({2}, DType::kInt64)}, 1, here({}), here({2}));
       }},
      {"batch_norm_apply: gamma must lie on cpu like x",
       [&](const Backend& b) {
         b.batch_norm_apply(here({2, 3}), here({3}), here({3}), elsewhere({3}), here({3}), {}, false, here({2, 3}));
       }},
      {"element_step: grad must lie on cpu like master",
       [&](const Backend& b) {
         b.element_step({.master = here({4}), .grad = elsewhere({4}), .segments = {&all, 1}}, AdamRule{}, scalars,
                        {here({4}), here({4})});
       }},
      {"element_step: the rule has 2 states, found 1",
       [&](const Backend& b) {
         b.element_step({.master = here({4}), .grad = here({4}), .segments = {&all, 1}}, AdamRule{}, scalars,
                        {here({4})});
       }},
      {"element_step: states[1] must lie on cpu like master",
       [&](const Backend& b) {
         b.element_step({.master = here({4}), .grad = here({4}), .segments = {&all, 1}}, AdamRule{}, scalars,
                        {here({4}), elsewhere({4})});
       }},
  };
  for (const Backend* tested : {&backend(kCpu), &reference_backend()}) {
    for (const Case& c : cases) {
      EXPECT_THAT([&] { c.call(*tested); }, ::testing::ThrowsMessage<ShapeError>(::testing::HasSubstr(c.message)))
          << tested->name;
    }
  }
}

TEST(Backend, AScheduleWithoutARateIsRefused) {
  const Tensor none = Tensor::empty({0}, DType::kFloat32);
  const Tensor has_gradient = Tensor::zeros({1}, DType::kFloat32);
  const Tensor steps = Tensor::zeros({1}, DType::kInt64);
  const float found_inf = 0;
  for (const Backend* tested : {&backend(kCpu), &reference_backend()}) {
    ScheduleState state;
    EXPECT_THAT([&] { tested->advance_schedule(&found_inf, none, has_gradient, steps, &state); },
                ::testing::ThrowsMessage<ShapeError>(::testing::HasSubstr("at least one learning rate")));
    EXPECT_EQ(state.applied_steps, 0);
  }
}

TEST(Backend, ADeviceWithoutKernelsIsNamed) {
  try {
    backend({DeviceType::kCuda, 99});
    FAIL() << "no error";
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("cuda:99"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::kernels
