// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "tests/amp/grad_scaler/scaled_model.h"

namespace lockstep::amp {
namespace {

using amp::testing::device;
using amp::testing::ScaledModel;
using amp::testing::scaler_with;
using amp::testing::state_of;
using amp::testing::values_of;
using amp::testing::with_sgd;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ScalerErrors, NothingWorksBeforeTheFirstScale) {
  GradScaler scaler = scaler_with();
  ScaledModel model;
  EXPECT_THAT([&] { scaler.step(*model.optimizer); },
              ThrowsMessage<UsageError>(HasSubstr("step() was called before any scale(loss)")));
  EXPECT_THAT([&] { scaler.unscale_(*model.optimizer); },
              ThrowsMessage<UsageError>(HasSubstr("unscale_() was called")));
  EXPECT_THAT([&] { scaler.update(); }, ThrowsMessage<UsageError>(HasSubstr("update() was called before")));
}

TEST(ScalerErrors, UnscaleTwice) {
  GradScaler scaler = scaler_with();
  ScaledModel model;
  model.backward(scaler);
  scaler.unscale_(*model.optimizer);
  EXPECT_THAT([&] { scaler.unscale_(*model.optimizer); },
              ThrowsMessage<UsageError>(HasSubstr("already been called on this optimizer since the last update()")));
}

TEST(ScalerErrors, UnscaleAfterStep) {
  GradScaler scaler = scaler_with();
  ScaledModel model;
  model.backward(scaler);
  scaler.step(*model.optimizer);
  EXPECT_THAT([&] { scaler.unscale_(*model.optimizer); },
              ThrowsMessage<UsageError>(HasSubstr("unscale_() is being called after step()")));
}

TEST(ScalerErrors, StepTwice) {
  GradScaler scaler = scaler_with();
  ScaledModel model;
  model.backward(scaler);
  scaler.step(*model.optimizer);
  const auto once = state_of(*model.optimizer);
  EXPECT_THAT([&] { scaler.step(*model.optimizer); },
              ThrowsMessage<UsageError>(HasSubstr("step() has already been called since the last update()")));
  EXPECT_EQ(state_of(*model.optimizer), once);
}

TEST(ScalerErrors, UpdateWithoutACheck) {
  GradScaler scaler = scaler_with();
  ScaledModel model;
  model.backward(scaler);
  EXPECT_THAT([&] { scaler.update(); }, ThrowsMessage<UsageError>(HasSubstr("no inf check was recorded")));
  scaler.step(*model.optimizer);
  scaler.update();
  EXPECT_THROW(scaler.update(), UsageError);
}

TEST(ScalerErrors, AStepWithoutABackwardPassSinceTheLastOne) {
  GradScaler scaler = scaler_with();
  ScaledModel model;
  const auto refused = ThrowsMessage<UsageError>(HasSubstr("no inf check can be recorded"));
  model.train(scaler);
  const auto before = state_of(*model.optimizer);
  for (const bool emptied : {false, true}) {
    if (emptied) model.optimizer->zero_grad();
    scaler.scale(kernels::testing::tensor_of({1}, {}, DType::kFloat32).to(device()));
    EXPECT_THAT([&] { scaler.step(*model.optimizer); }, refused);
    EXPECT_THAT([&] { scaler.unscale_(*model.optimizer); }, refused);
    EXPECT_THROW(scaler.update(), UsageError);
  }
  EXPECT_EQ(state_of(*model.optimizer), before);
  model.backward(scaler);
  EXPECT_FALSE((*scaler.step(*model.optimizer)).found_inf);
}

TEST(ScalerErrors, AStepOfAnOptimizerNoneOfWhoseParametersGotAGradient) {
  GradScaler scaler = scaler_with();
  ScaledModel one, other;
  one.backward(scaler);
  EXPECT_THAT([&] { scaler.step(*other.optimizer); },
              ThrowsMessage<UsageError>(HasSubstr("no inf check can be recorded")));
  EXPECT_FALSE((*scaler.step(*one.optimizer)).found_inf);
  scaler.update();
}

TEST(ScalerErrors, OptionsOutOfRange) {
  const auto refused = [](const GradScalerOptions& options, const std::string& message) {
    EXPECT_THAT([&] { scaler_with(options); }, ThrowsMessage<FieldError>("amp.loss_scale." + message));
  };
  refused({.init = 0}, "init: must be > 0, is 0");
  refused({.init = -1}, "init: must be > 0, is -1");
  refused({.init = std::nan("")}, "init: must be > 0, is nan");
  refused({.init = 1e39, .max = 1e300}, "init: must be a float32 number, is 1e+39");
  refused({.growth_factor = 1}, "growth_factor: must be > 1, is 1");
  refused({.growth_factor = 0.5}, "growth_factor: must be > 1, is 0.5");
  refused({.growth_factor = 1e7}, "growth_factor: must be <= 1e6, is 1e+07");
  refused({.backoff_factor = 1}, "backoff_factor: must be > 0 and < 1, is 1");
  refused({.backoff_factor = 0}, "backoff_factor: must be > 0 and < 1, is 0");
  refused({.backoff_factor = 2}, "backoff_factor: must be > 0 and < 1, is 2");
  refused({.growth_interval = 0}, "growth_interval: must be >= 1, is 0");
  refused({.growth_interval = 0x80000000u}, "growth_interval: must be <= 2147483647, is 2147483648");
  refused({.min = 0}, "min: must be > 0, is 0");
  refused({.max = -1}, "max: must be > 0, is -1");
  refused({.min = 8, .max = 4}, "min: must be <= max, is 8");
  refused({.init = 0.5}, "init: must be >= min, is 0.5");
  refused({.init = 16, .max = 8}, "init: must be <= max, is 16");
  EXPECT_NO_THROW(scaler_with({.dynamic = false, .init = 0.5}));
}

TEST(ScalerStates, UpdateMakesEveryOptimizerReadyAgain) {
  GradScaler scaler = scaler_with();
  ScaledModel model;
  for (int i = 0; i < 3; ++i) {
    model.optimizer->zero_grad();
    model.backward(scaler);
    scaler.unscale_(*model.optimizer);
    scaler.step(*model.optimizer);
    scaler.update();
  }
  EXPECT_EQ(model.optimizer->applied_steps(), 3);
}

TEST(ScalerStates, UpdateAfterUnscaleAloneUsesItsVerdict) {
  GradScaler scaler = scaler_with({.init = 1024});
  ScaledModel model;
  model.backward(scaler, false);
  scaler.unscale_(*model.optimizer);
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 512);
}

TEST(ScalerStates, UnscaledGradientsMayBeChangedBeforeTheStep) {
  GradScaler scaler = scaler_with({.init = 1024});
  ScaledModel scaled(with_sgd({.lr = 0.1})), plain(with_sgd({.lr = 0.1}));
  GradScaler one = scaler_with({.init = 1});
  scaled.backward(scaler);
  scaler.unscale_(*scaled.optimizer);
  plain.backward(one);
  kernels::testing::expect_close(scaled.arena->grads(), plain.arena->grads(), {.relative = 1e-6, .absolute = 1e-12});
  for (const Tensor& grads : {scaled.arena->grads(), plain.arena->grads()}) kernels::fill(grads, 0.25);
  scaler.step(*scaled.optimizer);
  plain.optimizer->step(1.0f, 0.0f);
  EXPECT_EQ(values_of(scaled.arena->masters()), values_of(plain.arena->masters())) << "unscaled once, not twice";
}

TEST(ScalerStates, UnscalingSixteenBitGradientsMakesThemFloat32) {
  GradScaler scaler = scaler_with({.init = 1024}), one = scaler_with({.init = 1});
  ScaledModel plain;
  plain.backward(one);
  ScaledModel model;
  model.arena->place_gradients(Tensor::zeros({model.arena->size()}, DType::kFloat16, device()).storage(),
                               DType::kFloat16);
  for (int step = 0; step < 2; ++step) {
    model.optimizer->zero_grad();
    model.backward(scaler, step == 0);
    EXPECT_EQ(model.parameters()[0].tensor.grad().dtype(), DType::kFloat16);
    scaler.unscale_(*model.optimizer);
    EXPECT_EQ(model.parameters()[0].tensor.grad().dtype(), DType::kFloat32);
    if (step == 0) {
      kernels::testing::expect_close(model.parameters()[0].tensor.grad(), plain.parameters()[0].tensor.grad(),
                                     {.relative = 0x1p-10, .absolute = 1e-9});
    }
    EXPECT_EQ((*scaler.step(*model.optimizer)).found_inf, step == 0 ? 0.0f : 1.0f);
    scaler.update();
  }
  EXPECT_EQ(model.optimizer->applied_steps(), 1);
}

TEST(ScalerStates, AStepAfterUnscaleClipsByTheNormOfTheChangedGradients) {
  GradScaler scaler = scaler_with({.init = 64});
  ScaledModel model(with_sgd({.lr = 1}, {.clip_norm = 1}));
  model.backward(scaler);
  scaler.unscale_(*model.optimizer);
  double count = 0;
  for (const nn::Parameter& parameter : model.parameters()) {
    kernels::fill(parameter.tensor.grad(), 100.0);
    count += static_cast<double>(parameter.tensor.numel());
  }
  const double before = model.parameters()[0].tensor.item();
  scaler.step(*model.optimizer);
  EXPECT_NEAR(before - model.parameters()[0].tensor.item(), 1 / std::sqrt(count), 1e-6);
}

TEST(ScalerScale, IsPartOfTheGraphAndDoesNotOverflowALowPrecisionLoss) {
  GradScaler scaler = scaler_with({.init = 16384});
  const Tensor loss = kernels::testing::tensor_of({8}, {}, DType::kFloat16).to(device());
  loss.set_requires_grad(true);
  const Tensor scaled = scaler.scale(loss);
  EXPECT_EQ(scaled.item(), 8 * 16384);
  scaled.backward();
  EXPECT_EQ(loss.grad().item(), 16384);
}

TEST(ScalerScale, ThenStepGivesTheUnscaledUpdate) {
  GradScaler scaler = scaler_with({.init = 4096}), one = scaler_with({.init = 1});
  ScaledModel scaled, plain;
  for (int i = 0; i < 3; ++i) {
    scaled.train(scaler);
    plain.train(one);
  }
  kernels::testing::expect_close(scaled.arena->masters(), plain.arena->masters(), {.relative = 1e-5, .absolute = 1e-7});
}

TEST(ScalerState, RoundTrips) {
  GradScaler scaler = scaler_with({.init = 1024, .growth_interval = 5, .max_consecutive_skips = 9});
  ScaledModel model;
  for (const bool finite : {true, false, true, true, false, false}) model.train(scaler, finite);
  const GradScalerState state = scaler.state_dict();
  EXPECT_EQ(state.scale, 128);
  EXPECT_EQ(state.growth_factor, 2);
  EXPECT_EQ(state.backoff_factor, 0.5);
  EXPECT_EQ(state.growth_interval, 5u);
  EXPECT_EQ(state.growth_tracker, 0u);
  EXPECT_EQ(state.consecutive_skips, 2u);
  EXPECT_EQ(state.skipped_steps, 3u);
  GradScaler restored = scaler_with({.growth_interval = 5});
  restored.load_state_dict(state);
  EXPECT_EQ(restored.state_dict(), state);
  EXPECT_EQ(restored.get_scale(), 128);
}

TEST(ScalerState, KeepsWithinItsOwnJobsBounds) {
  GradScaler saved = scaler_with({.init = 1024});
  GradScaler lower = scaler_with({.init = 16, .max = 256}), higher = scaler_with({.init = 8192, .min = 4096}),
             fixed = scaler_with({.dynamic = false, .init = 128});
  for (GradScaler* scaler : {&lower, &higher, &fixed}) scaler->load_state_dict(saved.state_dict());
  EXPECT_EQ(lower.get_scale(), 256);
  EXPECT_EQ(higher.get_scale(), 4096);
  EXPECT_EQ(fixed.get_scale(), 128) << "a static scale is the job's";
}

TEST(ScalerState, ContinuesWhereItWasSaved) {
  GradScaler scaler = scaler_with({.init = 8, .growth_interval = 3}),
             restored = scaler_with({.init = 1, .growth_interval = 3});
  ScaledModel model;
  model.train(scaler);
  model.train(scaler);
  restored.load_state_dict(scaler.state_dict());
  model.train(restored);
  EXPECT_EQ(restored.get_scale(), 16);
}

TEST(ScalerState, KeepsTheFactorsOfItsOwnJob) {
  GradScaler scaler = scaler_with({.growth_factor = 4});
  scaler.load_state_dict(scaler_with({.init = 2, .growth_factor = 8, .growth_interval = 3}).state_dict());
  EXPECT_EQ(scaler.state_dict().growth_factor, 4);
  EXPECT_EQ(scaler.state_dict().growth_interval, 2000u);
  EXPECT_EQ(scaler.get_scale(), 2);
}

TEST(ScalerState, ThatIsEmptyIsRefused) {
  GradScaler scaler = scaler_with();
  EXPECT_THAT([&] { scaler.load_state_dict({}); }, ThrowsMessage<UsageError>(HasSubstr("the state is empty")));
}

}  // namespace
}  // namespace lockstep::amp
