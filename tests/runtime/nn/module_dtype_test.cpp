// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <memory>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/meta.h"
#include "runtime/base/error.h"
#include "runtime/nn/arena.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/ops.h"
#include "runtime/tensor/memory.h"
#include "tests/runtime/kernels/tensors.h"
#include "tests/support/devices.h"

namespace lockstep::nn {
namespace {

using devices::device;
using kernels::testing::values_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// A model on the tests' device, without an arena.
std::unique_ptr<Sequential> small_model() {
  auto model = std::make_unique<Sequential>();
  model->add<Linear>("first", 5, 7);
  model->add<BatchNorm>("norm", 7, BatchNormOptions{.relu = true});
  model->add<Linear>("last", 7, 3);
  initialize(*model, 11);
  model->to(device());
  for (const Parameter& parameter : model->parameters()) EXPECT_EQ(parameter.tensor.device(), device());
  return model;
}

Tensor half_input() {
  std::vector<float> values(4 * 5);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * static_cast<float>(i) - 0.9f;
  return Tensor::from(values, {4, 5}).to(device());
}

std::vector<std::vector<double>> weights_of(const Module& model) {
  std::vector<std::vector<double>> weights;
  for (const Parameter& parameter : model.parameters()) weights.push_back(values_of(parameter.tensor));
  return weights;
}

TEST(ModuleDtype, RoundsEveryParameterOnceAndKeepsNoMaster) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const auto model = small_model();
    EXPECT_EQ(model->dtype(), DType::kFloat32);
    std::vector<std::vector<double>> rounded;
    std::size_t elements = 0;
    for (const Parameter& parameter : model->parameters()) {
      rounded.push_back(values_of(ops::cast(parameter.tensor.detach(), dtype)));
      elements += static_cast<std::size_t>(parameter.tensor.numel());
    }
    const std::size_t before = memory_statistics(device()).allocated;
    EXPECT_EQ(&model->to(dtype), model.get());
    EXPECT_EQ(before - memory_statistics(device()).allocated, 2 * elements);
    for (const Parameter& parameter : model->parameters()) EXPECT_EQ(parameter.tensor.dtype(), dtype);
    EXPECT_EQ(model->dtype(), dtype);
    EXPECT_EQ(weights_of(*model), rounded);
    model->float_();
    EXPECT_EQ(model->dtype(), DType::kFloat32);
    EXPECT_EQ(weights_of(*model), rounded) << "no bit comes back";
    EXPECT_EQ(model->statistics()[0].second->committed().dtype(), DType::kFloat32);
  }
}

TEST(ModuleDtype, HasTheInputFollowAndComputesAsO3DoesToTheBit) {
  for (const bool training : {true, false}) {
    const autograd::NoGrad no_grad;
    const auto deployed = small_model();
    deployed->half().train(training);
    const Tensor y = forward(*deployed, half_input());
    EXPECT_EQ(y.dtype(), DType::kFloat32);
    const auto trained = small_model();
    trained->set_arena(std::make_shared<Arena>(*trained, ArenaOptions{.compute_dtype = DType::kFloat16,
                                                                      .reduced_parameters = true,
                                                                      .keep_norm_float32 = false,
                                                                      .master_weights = false,
                                                                      .device = device()}));
    trained->train(training);
    EXPECT_EQ(values_of(y), values_of(forward(*trained, half_input())));
  }
}

TEST(ModuleDtype, OfAModelThatIsFloat32ChangesNothing) {
  const autograd::NoGrad no_grad;
  const auto model = small_model();
  model->train(false);
  const std::vector<double> plain = values_of(model->forward(half_input()));
  const void* memory = model->parameters()[0].tensor.data();
  model->float_();
  EXPECT_EQ(model->parameters()[0].tensor.data(), memory);
  EXPECT_EQ(values_of(forward(*model, half_input())), plain);
  EXPECT_EQ(values_of(forward(*model, ops::cast(ops::cast(half_input(), DType::kFloat16), DType::kFloat32))),
            values_of(forward(*model, ops::cast(half_input(), DType::kFloat16))))
      << "a 16-bit input follows too";
}

TEST(ModuleDtype, LeavesAnAutocastOfTheCallersAlone) {
  const autograd::NoGrad no_grad;
  const auto model = small_model();
  model->train(false);
  const amp::Autocast autocast(DType::kBFloat16);
  EXPECT_EQ(forward(*model, half_input()).dtype(), DType::kBFloat16);
}

TEST(ModuleDtype, LeavesIntegerInputsAlone) {
  struct Sees : Module {
    Sees() { add_parameter("weight", {2}, ParameterKind::kWeight, Initializer::constant(1)); }
    Tensor forward(const Tensor& x) override {
      seen = x.dtype();
      return Tensor::zeros({2}, DType::kFloat16);
    }
    DType seen = DType::kFloat32;
  } model;
  model.half();
  forward(model, Tensor::from<std::int64_t>({1, 2}, {2}));
  EXPECT_EQ(model.seen, DType::kInt64);
}

TEST(ModuleDtype, GradientsFollow) {
  const auto model = small_model();
  ops::sum(forward(*model, half_input())).backward();
  model->half();
  for (const Parameter& parameter : model->parameters()) {
    EXPECT_EQ(parameter.tensor.grad().dtype(), DType::kFloat16) << parameter.name;
  }
  ops::sum(forward(*model, half_input())).backward();  // adds to them
}

TEST(ModuleDtype, OfParametersThatAnOptimizerTrainsIsAnErrorThatNamesOne) {
  const auto model = small_model();
  model->set_arena(std::make_shared<Arena>(*model, ArenaOptions{.device = device()}));
  const std::vector<std::vector<double>> before = weights_of(*model);
  EXPECT_THAT([&] { model->half(); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr("first.weight"), HasSubstr("float16"))));
  model->for_each([](const std::string& path, Module& module) {
    if (path != "norm") return;
    EXPECT_THROW(module.bfloat16(), UsageError) << "of a part of it";
  });
  EXPECT_EQ(weights_of(*model), before);
  model->float_();  // what it is already
}

TEST(ModuleDtype, ThatIsNotFloatingIsAnError) {
  EXPECT_THAT([] { small_model()->to(DType::kInt32); }, ThrowsMessage<UsageError>(HasSubstr("int32")));
}

TEST(ModuleDtype, AnArenaTakesARoundedModelUpInFloat32) {
  const auto model = small_model();
  model->half();
  const std::vector<std::vector<double>> rounded = weights_of(*model);
  const Arena arena(*model, {.device = device()});
  EXPECT_EQ(weights_of(*model), rounded);
  EXPECT_EQ(model->dtype(), DType::kFloat32);
}

}  // namespace
}  // namespace lockstep::nn
