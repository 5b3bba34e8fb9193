// SPDX-License-Identifier: Apache-2.0
// amp::initialize of several models and optimizers, and the overrides of an opt level.
#include <gmock/gmock.h>

#include "amp/autocast/autocast.h"
#include "amp/grad_scaler/opt_level.h"
#include "runtime/base/error.h"
#include "runtime/nn/forward.h"
#include "tests/amp/grad_scaler/scaled_model.h"

namespace lockstep::amp {
namespace {

using amp::testing::device;
using amp::testing::scaler_with;
using amp::testing::values_of;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// A linear layer that remembers what its forward pass met.
struct Watched : nn::Module {
  nn::Linear& dense = add_module<nn::Linear>("dense", 4, 4);
  DType input = DType::kUInt8;
  DType product = DType::kUInt8;
  bool autocast = false;
  Tensor forward(const Tensor& x) override {
    const Tensor y = dense.forward(x);
    input = x.dtype();
    product = y.dtype();
    autocast = Autocast::enabled();
    return y;
  }
};

/// The dtype of what the model gives.
DType run(Watched& model, const AmpOptions& options) {
  nn::initialize(model, 1);
  const auto optimizer = optim::sgd(model.parameters(), {.lr = 0.1});
  initialize(model, *optimizer, options, device());
  return nn::forward(model, Tensor::zeros({2, 4}, DType::kFloat32, device())).dtype();
}

TEST(InitializeOverrides, ChangeOneColumnEach) {
  constexpr DType kHalf = DType::kFloat16, kFloat = DType::kFloat32;
  Watched outputs, casts, weights, both;
  EXPECT_EQ(run(outputs, {.opt_level = OptLevel::kO1, .cast_model_outputs = kFloat}), kFloat);
  EXPECT_EQ(outputs.product, kHalf);
  EXPECT_EQ(run(casts, {.opt_level = OptLevel::kO2, .autocast = true}), kFloat);
  EXPECT_TRUE(casts.autocast);
  EXPECT_EQ(casts.dense.parameters()[0].tensor.dtype(), kHalf);
  EXPECT_EQ(run(weights, {.opt_level = OptLevel::kO2, .cast_model_type = kFloat, .autocast = true}), kHalf);
  EXPECT_EQ(weights.dense.parameters()[0].tensor.dtype(), kFloat);
  EXPECT_EQ(weights.input, kFloat);
  EXPECT_EQ(run(both, {.opt_level = OptLevel::kO3, .cast_model_outputs = kHalf}), kHalf);
  EXPECT_EQ(both.input, kHalf);
  EXPECT_FALSE(both.autocast);
}

TEST(InitializeOverrides, ThatContradictTheLevelAreRefused) {
  const auto refused = [](const AmpOptions& options, const char* message) {
    EXPECT_THAT([&] { properties_of(options); }, ThrowsMessage<FieldError>(HasSubstr(message)));
  };
  refused({.opt_level = OptLevel::kO0, .autocast = true}, "amp.autocast: casts to 16 bits, and the compute dtype is");
  refused({.opt_level = OptLevel::kO1, .autocast = false}, "amp.autocast: leaves nothing in float16");
  refused({.opt_level = OptLevel::kO2, .cast_model_type = DType::kFloat32}, "amp.cast_model_type: leaves nothing in");
  refused({.opt_level = OptLevel::kO2, .cast_model_type = DType::kBFloat16},
          "amp.cast_model_type: must be float32 or the compute dtype, float16, is bfloat16");
  refused({.opt_level = OptLevel::kO1, .cast_model_outputs = DType::kInt64},
          "amp.cast_model_outputs: must be a floating dtype, is int64");
  refused({.opt_level = OptLevel::kO1, .keep_batch_norm_fp32 = false},
          "keep_batch_norm_fp32: cannot be false under O1");
  EXPECT_NO_THROW(properties_of({.opt_level = OptLevel::kO3, .keep_batch_norm_fp32 = true}));
}

TEST(InitializeModels, ThatAreNotFloat32AreRefused) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat64}) {
    for (const OptLevel level : {OptLevel::kO0, OptLevel::kO1, OptLevel::kO2, OptLevel::kO3}) {
      Watched model;
      model.to(dtype);
      EXPECT_THAT(
          [&] { run(model, {.opt_level = level}); },
          ThrowsMessage<UsageError>(HasSubstr("the model's parameter dense.weight, " + std::string(name_of(dtype)))));
      EXPECT_EQ(model.dtype(), dtype);
      EXPECT_NO_THROW(run(static_cast<Watched&>(model.float_()), {.opt_level = level}));
    }
  }
}

TEST(InitializeLists, BindOptimizersToTheModelsThatHaveTheirParameters) {
  Watched one, two, judge;
  for (Watched* model : {&one, &two, &judge}) nn::initialize(*model, 1);
  std::vector<nn::Parameter> all = one.parameters();
  all.push_back(two.parameters()[0]);
  const auto first = optim::sgd(all, {.lr = 0.1}), second = optim::adam({two.parameters()[1]}, {.lr = 0.1});
  initialize({&one, &two, &judge}, {first.get(), second.get()}, {}, device());
  EXPECT_EQ(first->arenas(), (std::vector<nn::Arena*>{one.arena().get(), two.arena().get()}));
  EXPECT_EQ(second->arenas(), std::vector<nn::Arena*>{two.arena().get()});
  EXPECT_TRUE(judge.arena());
  GradScaler scaler = scaler_with({.init = 64});
  const Tensor x = kernels::testing::random_tensor({2, 4}, DType::kFloat32, 1).to(device());
  scaler.scale(ops::sum(ops::add(nn::forward(one, x), nn::forward(two, x)))).backward();
  const std::vector<double> before = values_of(two.arena()->masters());
  EXPECT_FALSE((*scaler.step(*first)).found_inf);
  EXPECT_FALSE((*scaler.step(*second)).found_inf);
  scaler.update();
  const std::vector<double> after = values_of(two.arena()->masters());
  for (const nn::Arena::Slot& slot : two.arena()->slots()) {
    EXPECT_NE(after[static_cast<std::size_t>(slot.begin)], before[static_cast<std::size_t>(slot.begin)]);
  }
}

TEST(InitializeLists, RefuseWhatDoesNotBelongTogether) {
  Watched one, two;
  const auto of_two = optim::sgd(two.parameters(), {.lr = 0.1});
  EXPECT_THAT([&] { initialize({&one}, {of_two.get()}); },
              ThrowsMessage<UsageError>(HasSubstr("no model given to amp::initialize has the optimizer's parameter")));
  EXPECT_FALSE(one.arena());
  EXPECT_THAT([&] { initialize({&one, &one}, {}); }, ThrowsMessage<UsageError>(HasSubstr("share parameter")));
  initialize({&one}, {});
  EXPECT_THAT(
      [&] {
        initialize({&two, &one}, {of_two.get()});
      },
      ThrowsMessage<UsageError>(HasSubstr("called on this model before")));
  EXPECT_FALSE(two.arena());
}

}  // namespace
}  // namespace lockstep::amp
