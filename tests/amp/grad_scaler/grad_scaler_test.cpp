// SPDX-License-Identifier: Apache-2.0
// The rest of PyTorch's GradScaler: switched off, set by hand, several losses, and what two of them must not do.
#include <gmock/gmock.h>

#include <cmath>

#include "runtime/autograd/engine.h"
#include "runtime/base/error.h"
#include "tests/amp/grad_scaler/scaled_model.h"

namespace lockstep::amp {
namespace {

using amp::testing::device;
using amp::testing::ScaledModel;
using amp::testing::scaler_with;
using amp::testing::state_of;
using amp::testing::values_of;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ScalerDisabled, LeavesLossesAndGradientsAlone) {
  GradScaler off = scaler_with({.enabled = false}), one = scaler_with({.dynamic = false, .init = 1});
  EXPECT_FALSE(off.is_enabled());
  EXPECT_TRUE(one.is_enabled());
  const Tensor loss = Tensor::from<float>({2}, {}).to(device());
  EXPECT_TRUE(off.scale(loss).is(loss));
  ScaledModel with, without;
  for (int i = 0; i < 3; ++i) {
    with.train(one);
    without.optimizer->zero_grad();
    without.backward(off);
    off.unscale_(*without.optimizer);
    EXPECT_FALSE((*off.step(*without.optimizer)).found_inf);
    off.update();
    off.update(8.0);
  }
  EXPECT_EQ(state_of(*with.optimizer), state_of(*without.optimizer));
  EXPECT_EQ(off.get_scale(), 1);
}

TEST(ScalerChecks, ThatAreForgottenLeaveTheStepToBeginAnew) {
  ScaledModel model;
  GradScaler scaler = scaler_with();
  model.backward(scaler);
  scaler.step(*model.optimizer);
  EXPECT_THROW(scaler.step(*model.optimizer), UsageError);
  scaler.forget_checks();
  EXPECT_THROW(scaler.update(), UsageError) << "no inf check is left";
  EXPECT_FALSE(model.train(scaler).found_inf);
}

TEST(ScalerBackward, NamesALossThatIsUndefined) {
  GradScaler scaler = scaler_with();
  EXPECT_THAT([&] { scaler.scale(Tensor()); },
              ThrowsMessage<UsageError>(HasSubstr("GradScaler::scale: the loss is an undefined tensor")));
  EXPECT_THAT([&] { scaler.backward({}); },
              ThrowsMessage<UsageError>(HasSubstr("GradScaler::backward: the loss is an undefined tensor")));
}

TEST(ScalerBackward, GivesTheGradientsOfTheScaledLoss) {
  for (const GradScalerOptions& options :
       {GradScalerOptions{.init = 1024}, GradScalerOptions{.init = 3}, GradScalerOptions{.enabled = false}}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
      GradScaler scaler = scaler_with(options);
      const auto gradient = [&](bool scaled) {
        const Tensor x = kernels::testing::random_tensor({7, 3}, dtype, 1).to(device());
        x.set_requires_grad(true);
        const Tensor loss = ops::mean(ops::mul(x, x));
        scaled ? scaler.scale(loss).backward() : scaler.backward(loss);
        return kernels::testing::bytes_of(x.grad());
      };
      EXPECT_EQ(gradient(false), gradient(true));
    }
  }
}

TEST(ScalerBackward, MarksTheGradientsAsItsOwn) {
  GradScaler one = scaler_with({.init = 8}), other = scaler_with({.init = 8});
  ScaledModel model;
  one.backward(ops::mean(model.net.forward(kernels::testing::random_tensor({6, 5}, DType::kFloat32, 1).to(device()))));
  other.scale(Tensor::from<float>({1}, {}).to(device()));
  EXPECT_THAT([&] { other.step(*model.optimizer); }, ThrowsMessage<UsageError>(HasSubstr("another GradScaler")));
  EXPECT_NO_THROW(one.step(*model.optimizer));
}

TEST(ScalerDisabled, SkipsABadStepAllTheSame) {
  GradScaler off = scaler_with({.enabled = false});
  ScaledModel model;
  const auto before = state_of(*model.optimizer);
  EXPECT_TRUE(model.train(off, false).found_inf);
  EXPECT_EQ(state_of(*model.optimizer), before);
  EXPECT_EQ(off.consecutive_skips(), 1u);
}

TEST(ScalerDisabled, HasNoState) {
  GradScaler off = scaler_with({.enabled = false}), on = scaler_with({.init = 8});
  EXPECT_TRUE(off.state_dict().empty());
  EXPECT_EQ(to_json(off.state_dict()), "{}");
  EXPECT_THAT([&] { on.load_state_dict(off.state_dict()); },
              ThrowsMessage<UsageError>(HasSubstr("it comes from a disabled GradScaler")));
  EXPECT_NO_THROW(off.load_state_dict(on.state_dict()));
  EXPECT_EQ(off.get_scale(), 1);
}

TEST(ScalerDisabled, NeedsNoScaledLoss) {
  GradScaler off = scaler_with({.enabled = false});
  ScaledModel model;
  model.SmallModel::backward(1);
  EXPECT_FALSE((*off.step(*model.optimizer)).found_inf);
  off.update();
  EXPECT_EQ(model.optimizer->applied_steps(), 1);
}

TEST(ScalerUpdate, TakesANewScaleAndKeepsTheTracker) {
  GradScaler scaler = scaler_with({.init = 64, .growth_interval = 100});
  ScaledModel model;
  model.train(scaler);
  model.train(scaler);
  scaler.update(1024.0);
  EXPECT_EQ(scaler.get_scale(), 1024);
  EXPECT_EQ(scaler.growth_tracker(), 2u);
  scaler.update(Tensor::from<float>({3}, {1}).to(device()));
  EXPECT_EQ(scaler.get_scale(), 3);
  EXPECT_EQ(scaler.state().read().inverse, static_cast<float>(1.0 / 3));
  model.optimizer->zero_grad();
  model.backward(scaler, false);
  scaler.step(*model.optimizer);
  scaler.update(128.0);
  EXPECT_EQ(scaler.get_scale(), 128) << "no backing off";
  EXPECT_EQ(scaler.consecutive_skips(), 1u) << "a skip all the same";
  model.train(scaler);
  EXPECT_EQ(scaler.growth_tracker(), 3u);
}

TEST(ScalerUpdate, RefusesAScaleOutOfRange) {
  GradScaler scaler = scaler_with({.init = 64, .max = 128});
  EXPECT_THAT([&] { scaler.update(8.0); }, ThrowsMessage<UsageError>(HasSubstr("before any scale(loss)")));
  scaler.scale(Tensor::zeros({}, DType::kFloat32, device()));
  const auto refused = [&](double scale, const char* message) {
    EXPECT_THAT([&] { scaler.update(scale); }, ThrowsMessage<FieldError>(HasSubstr(message)));
  };
  refused(0, "GradScaler::update(new_scale): must be > 0, is 0");
  refused(std::nan(""), "must be > 0, is nan");
  refused(129, "must be <= max, is 129");
  refused(0.5, "must be >= min, is 0.5");
  EXPECT_THAT([&] { scaler.update(Tensor::zeros({2}, DType::kFloat32, device())); },
              ThrowsMessage<UsageError>(HasSubstr("takes one float32 number")));
  EXPECT_EQ(scaler.get_scale(), 64);
}

TEST(ScalerSetters, TakeEffectWithTheNextUpdate) {
  GradScaler scaler = scaler_with({.init = 64, .growth_interval = 100});
  ScaledModel model;
  model.train(scaler);
  scaler.set_growth_factor(4);
  scaler.set_backoff_factor(0.25);
  scaler.set_growth_interval(2);
  EXPECT_EQ(scaler.get_growth_factor(), 4);
  EXPECT_EQ(scaler.get_backoff_factor(), 0.25);
  EXPECT_EQ(scaler.get_growth_interval(), 2u);
  model.train(scaler);
  EXPECT_EQ(scaler.get_scale(), 256);
  model.train(scaler, false);
  EXPECT_EQ(scaler.get_scale(), 64);
  EXPECT_THAT([&] { scaler.set_growth_factor(1); }, ThrowsMessage<FieldError>(HasSubstr("growth_factor: must be > 1")));
  EXPECT_EQ(scaler.get_growth_factor(), 4);
}

TEST(ScalerLosses, AreScaledTogetherAndAddUp) {
  GradScaler scaler = scaler_with({.init = 64});
  const Tensor x = Tensor::from<float>({3}, {}).to(device());
  x.set_requires_grad(true);
  const std::vector<Tensor> scaled = scaler.scale(std::vector{ops::scale(x, 2), ops::scale(x, 5)});
  EXPECT_EQ(scaled.at(0).item(), 6 * 64);
  EXPECT_EQ(scaled.at(1).item(), 15 * 64);
  autograd::backward(scaled);
  EXPECT_EQ(x.grad().item(), 7 * 64);
}

TEST(TwoScalers, InOneOptimizersGradientsAreRefused) {
  GradScaler first = scaler_with({.init = 64}), second = scaler_with({.init = 64});
  ScaledModel model;
  model.backward(first);
  EXPECT_THAT([&] { model.backward(second); }, ThrowsMessage<UsageError>(HasSubstr("two GradScalers have scaled")));
  model.optimizer->zero_grad();
  model.backward(first);
  second.scale(Tensor::zeros({}, DType::kFloat32, device()));
  EXPECT_THAT([&] { second.step(*model.optimizer); },
              ThrowsMessage<UsageError>(HasSubstr("another GradScaler has scaled the gradient of")));
  EXPECT_THAT([&] { second.unscale_(*model.optimizer); }, ThrowsMessage<UsageError>(HasSubstr("another GradScaler")));
  EXPECT_FALSE((*first.step(*model.optimizer)).found_inf);
}

TEST(TwoScalers, InOneBackwardPassAreRefused) {
  GradScaler first = scaler_with(), second = scaler_with();
  const Tensor x = Tensor::from<float>({3}, {}).to(device());
  x.set_requires_grad(true);
  const Tensor sum = ops::add(first.scale(x), second.scale(x));
  EXPECT_THAT([&] { sum.backward(); }, ThrowsMessage<UsageError>(HasSubstr("losses that two GradScalers")));
}

TEST(TwoScalers, ServeTwoOptimizers) {
  GradScaler first = scaler_with({.init = 64, .growth_interval = 1}), second = scaler_with({.init = 128});
  ScaledModel one, two;
  one.train(first);
  two.train(second, false);
  EXPECT_EQ(first.get_scale(), 128);
  EXPECT_EQ(second.get_scale(), 64);
  EXPECT_EQ(one.optimizer->applied_steps(), 1);
  EXPECT_EQ(two.optimizer->applied_steps(), 0);
}

TEST(Unscaled, GradientsRefuseAnotherBackwardPass) {
  GradScaler scaler = scaler_with({.init = 64});
  ScaledModel model;
  model.backward(scaler);
  scaler.unscale_(*model.optimizer);
  const std::vector<double> before = values_of(model.arena->grads());
  EXPECT_THAT([&] { model.backward(scaler); },
              ThrowsMessage<UsageError>(HasSubstr("a backward pass after unscale_()")));
  EXPECT_EQ(values_of(model.arena->grads()), before);
  scaler.step(*model.optimizer);
  scaler.update();
  model.optimizer->zero_grad();
  EXPECT_NO_THROW(model.backward(scaler));
}

TEST(ScalerRanks, MustBeThoseThatTrainTheModel) {
  GradScaler scaler = scaler_with();
  ScaledModel model;
  model.backward(scaler);
  model.arena->set_ranks(2);
  const auto refused = ThrowsMessage<UsageError>(HasSubstr("2 ranks train the optimizer's model, 1 agree"));
  EXPECT_THAT([&] { scaler.step(*model.optimizer); }, refused);
  EXPECT_THAT([&] { scaler.unscale_(*model.optimizer); }, refused);
}

}  // namespace
}  // namespace lockstep::amp
