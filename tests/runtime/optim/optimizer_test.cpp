// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/engine.h"
#include "runtime/autograd/meta.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "tests/runtime/optim/small_model.h"

namespace lockstep::optim {
namespace {

using optim::testing::device;
using optim::testing::every_optimizer;
using optim::testing::MakeOptimizer;
using optim::testing::SmallModel;
using optim::testing::state_of;
using optim::testing::values_of;
using optim::testing::with_adagrad;
using optim::testing::with_adam;
using optim::testing::with_adamw;
using optim::testing::with_lamb;
using optim::testing::with_lars;
using optim::testing::with_novograd;
using optim::testing::with_sgd;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Optimizer, HasANameAndARate) {
  EXPECT_EQ(SmallModel(with_sgd({.lr = 1})).optimizer->name(), "sgd");
  EXPECT_EQ(SmallModel(with_adam({.lr = 1})).optimizer->name(), "adam");
  EXPECT_EQ(SmallModel(with_adamw({.lr = 1})).optimizer->name(), "adamw");
  EXPECT_EQ(SmallModel(with_adamw({.lr = 0.125})).optimizer->learning_rate(), 0.125);
}

TEST(Optimizer, NamesItsState) {
  const auto names = [](const MakeOptimizer& optimizer) {
    std::vector<std::string> all;
    for (const auto& [name, tensor] : SmallModel(optimizer).optimizer->state()) all.push_back(name);
    return all;
  };
  EXPECT_THAT(names(with_sgd({.lr = 1})), ElementsAre());
  EXPECT_THAT(names(with_sgd({.lr = 1, .momentum = 0.9})), ElementsAre("momentum"));
  EXPECT_THAT(names(with_adam({.lr = 1})), ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_THAT(names(with_adamw({.lr = 1, .amsgrad = true})), ElementsAre("exp_avg", "exp_avg_sq", "max_exp_avg_sq"));
  EXPECT_THAT(names(with_adagrad({.lr = 1})), ElementsAre("sum"));
  EXPECT_THAT(names(with_lamb({.lr = 1})), ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_THAT(names(with_lars({.lr = 1})), ElementsAre("momentum"));
  EXPECT_THAT(names(with_lars({.lr = 1, .momentum = 0})), ElementsAre());
  EXPECT_THAT(names(with_novograd({.lr = 1})), ElementsAre("exp_avg"));
  const SmallModel novograd(with_novograd({.lr = 1}));
  ASSERT_EQ(novograd.optimizer->parameter_state().size(), 1u);
  EXPECT_EQ(novograd.optimizer->parameter_state()[0].first, "exp_avg_sq");
  EXPECT_EQ(novograd.optimizer->parameter_state()[0].second.numel(), 4);
}

TEST(Optimizer, IsOfNoUseBeforeItHasItsArena) {
  nn::Linear one(2, 2), other(2, 2);
  const auto optimizer = sgd(one.parameters(), {.lr = 1});
  EXPECT_THAT([&] { optimizer->step(); }, ThrowsMessage<UsageError>(HasSubstr("no arena")));
  EXPECT_THAT([&] { optimizer->attach(std::make_shared<nn::Arena>(other, nn::ArenaOptions{})); },
              ThrowsMessage<UsageError>(HasSubstr("no model here has the optimizer's parameter weight")));
}

TEST(Optimizer, RefusesAnEmptyListOfParameters) {
  for (const testing::MakeOptimizer& make : testing::every_optimizer()) {
    EXPECT_THAT([&] { make.of({}); }, ThrowsMessage<UsageError>(HasSubstr("empty list of parameters"))) << make.name;
  }
}

TEST(Optimizer, RefusesALearningRateThatIsNoNumberOrBelowZero) {
  SmallModel model(with_sgd({.lr = 0.5}));
  for (const double rate : {std::nan(""), std::numeric_limits<double>::infinity(), -0.1}) {
    EXPECT_THAT([&] { model.optimizer->set_learning_rate(rate); },
                ThrowsMessage<UsageError>(HasSubstr("it must be a finite number >= 0")));
  }
  EXPECT_THAT(
      [&] {
        model.optimizer->set_learning_rates({0.1f, std::nanf("")});
      },
      ThrowsMessage<UsageError>(HasSubstr("learning rate nan of applied step 1")));
  EXPECT_EQ(model.optimizer->learning_rate(), 0.5);
  EXPECT_NO_THROW(model.optimizer->set_learning_rate(0));
}

TEST(Optimizer, RefusesAParameterThatIsListedTwice) {
  nn::Linear layer(2, 2);
  std::vector<nn::Parameter> parameters = layer.parameters();
  parameters.push_back(parameters[0]);
  EXPECT_THAT([&] { sgd(parameters, {.lr = 1}); },
              ThrowsMessage<UsageError>(HasSubstr("an optimizer is given parameter weight twice")));
}

class SkipTest : public ::testing::TestWithParam<MakeOptimizer> {};

TEST_P(SkipTest, ChangesNothing) {
  SmallModel model(GetParam(), {.compute_dtype = DType::kFloat16});
  const Tensor x = kernels::testing::random_tensor({6, 5}, DType::kFloat32, 1).to(device());
  const auto step = [&](SmallModel& trained, int number, float found_inf) {
    trained.backward(number);
    trained.net.forward(x);  // leaves pending statistics
    trained.optimizer->check_gradients();
    trained.optimizer->step(1.0f, found_inf);
    const DeviceValue<float> verdict(found_inf, device());
    trained.arena->commit_statistics(verdict.data());
  };
  step(model, 1, 0.0f);
  const auto before = state_of(*model.optimizer);
  step(model, 2, 1.0f);
  EXPECT_EQ(state_of(*model.optimizer), before);
  EXPECT_EQ(values_of(model.arena->statistics()[0].second->latest()),
            values_of(model.arena->statistics()[0].second->committed()))
      << "nothing is pending any more";
  step(model, 3, 0.0f);
  const auto after = state_of(*model.optimizer);
  EXPECT_NE(after, before);
  EXPECT_EQ(model.optimizer->applied_steps(), 2);

  SmallModel straight(GetParam(), {.compute_dtype = DType::kFloat16});
  for (const int number : {1, 3}) step(straight, number, 0.0f);
  EXPECT_EQ(state_of(*straight.optimizer), after) << "as if the skipped step had never been";
}

TEST_P(SkipTest, OfTheVeryFirstStepLeavesTheStateFresh) {
  SmallModel model(GetParam()), straight(GetParam());
  model.backward(1);
  model.optimizer->step(1.0f, 1.0f);
  for (SmallModel* each : {&model, &straight}) {
    each->backward(2);
    each->optimizer->check_gradients();
    each->optimizer->step(1.0f, 0.0f);
  }
  EXPECT_EQ(state_of(*model.optimizer), state_of(*straight.optimizer));
}

INSTANTIATE_TEST_SUITE_P(Optimizers, SkipTest, ::testing::ValuesIn(every_optimizer()),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(Optimizer, CheckGradientsFlagsTheBadParametersInTheArenasOrder) {
  SmallModel model(with_sgd({.lr = 0.1}, {.clip_norm = 1}));
  model.backward(1);
  EXPECT_THAT(values_of(model.optimizer->check_gradients()), Each(0));
  model.spoil(1, 6, std::numeric_limits<double>::infinity());   // dense.bias
  model.spoil(3, 0, std::numeric_limits<double>::quiet_NaN());  // norm.bias
  EXPECT_THAT(values_of(model.optimizer->check_gradients()), ElementsAre(1, 0, 1, 0));
}

TEST(Optimizer, StepWithoutAScalerSkipsABadGradientToo) {
  SmallModel model(with_sgd({.lr = 0.1}));
  const auto before = state_of(*model.optimizer);
  model.backward(1);
  model.spoil(0, 0, std::numeric_limits<double>::quiet_NaN());
  model.optimizer->step();
  EXPECT_EQ(state_of(*model.optimizer), before);
  model.backward(1);
  model.optimizer->step();
  EXPECT_NE(state_of(*model.optimizer), before);
}

TEST(Optimizer, CountsTheStepsThatItSkipsWithoutAScalerAndSaysItOnce) {
  std::ostringstream log;
  const auto previous = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  SmallModel model(with_sgd({.lr = 0.1}));
  EXPECT_EQ(model.optimizer->skipped_steps(), 0);
  for (int step = 1; step <= 4; ++step) {
    model.backward(step);
    if (step % 2 == 0) model.spoil(0, 0, std::numeric_limits<double>::quiet_NaN());
    model.optimizer->step();
  }
  const std::string at_once = log.str();
  EXPECT_EQ(model.optimizer->skipped_steps(), 2);
  spdlog::set_default_logger(previous);
  EXPECT_EQ(model.optimizer->applied_steps(), 2);
  EXPECT_EQ(at_once.empty(), device() != kCpu) << "where the count would wait, only who asks for it is told";
  const std::string said = "optimizer.step() skipped";
  EXPECT_THAT(log.str(), HasSubstr(said));
  EXPECT_EQ(log.str().find(said), log.str().rfind(said));
}

TEST(Optimizer, AGradientThatNoBackwardPassWroteIsZeroNotThatOfAnEarlierStep) {
  SmallModel model(with_sgd({.lr = 0.1}));
  model.backward(1);
  model.optimizer->step();
  const std::vector<double> weight = values_of(model.parameters()[0].tensor);
  const std::vector<double> bias = values_of(model.parameters()[1].tensor);
  model.optimizer->zero_grad();
  ops::sum(model.parameters()[1].tensor).backward();
  model.optimizer->step();
  EXPECT_EQ(values_of(model.parameters()[0].tensor), weight);
  EXPECT_NE(values_of(model.parameters()[1].tensor), bias);
}

TEST(Optimizer, AdamsSecondMomentIsThatOfDoubleBetas) {
  SmallModel model(with_adam({.lr = 0.1}));
  model.backward(1);
  model.optimizer->step();
  const std::vector<double> found = values_of(model.optimizer->state()[1].second);
  for (std::size_t i = 0; i < model.arena->slots().size(); ++i) {
    const nn::Arena::Slot& slot = model.arena->slots()[i];
    const std::vector<double> gradient = model.gradient_of(3 - i, 1);
    for (std::int64_t at = slot.begin; at < slot.end; ++at) {
      const double g = gradient[static_cast<std::size_t>(at - slot.begin)];
      EXPECT_NEAR(found[static_cast<std::size_t>(at)], (1 - 0.999) * g * g, 2e-7 * 0.001 * g * g);
    }
  }
}

TEST(Optimizer, AnAppliedStepOutdatesCachedCasts) {
  SmallModel model(with_sgd({.lr = 0.1}));
  const amp::Autocast guard(DType::kFloat16);  // around several steps
  const Tensor x = kernels::testing::random_tensor({2, 5}, DType::kFloat32, 1).to(device());
  const Tensor weight = model.parameters()[0].tensor;
  const Tensor before = ops::linear(x, weight, {});
  model.backward(1);
  model.optimizer->step();
  EXPECT_NE(values_of(ops::linear(x, weight, {})), values_of(before));
}

TEST(Optimizer, UnscaleDividesTheGradientsInPlace) {
  SmallModel model(with_sgd({.lr = 0.1}, {.clip_norm = 1}));
  model.backward(1, 64);
  const std::vector<double> scaled = values_of(model.arena->grads());
  const DeviceValue<float> inverse(1.0f / 64, device());
  model.optimizer->unscale_gradients(inverse.data());
  const std::vector<double> unscaled = values_of(model.arena->grads());
  for (std::size_t i = 0; i < scaled.size(); ++i) EXPECT_EQ(unscaled[i] * 64, scaled[i]);
}

TEST(Optimizer, UnscalingSixteenBitGradientsKeepsWhatTheyCannotHold) {
  for (const DType wire : {DType::kFloat16, DType::kBFloat16}) {
    SmallModel model(with_sgd({.lr = 1}));
    model.arena->place_gradients(Tensor::zeros({model.arena->size()}, wire, device()).storage(), wire);
    model.backward(1, 0x1p-10);
    const std::vector<double> scaled = values_of(model.arena->grads()), before = values_of(model.arena->masters());
    const DeviceValue<float> inverse(0x1p-20f, device());
    EXPECT_THAT(values_of(model.optimizer->unscale_gradients(inverse.data())), Each(0));
    EXPECT_EQ(model.arena->grads().dtype(), DType::kFloat32);
    const std::vector<double> unscaled = values_of(model.arena->grads());
    for (const nn::Arena::Slot& slot : model.arena->slots()) {
      for (auto i = static_cast<std::size_t>(slot.begin); i < static_cast<std::size_t>(slot.end); ++i) {
        EXPECT_EQ(unscaled[i], scaled[i] * 0x1p-20) << i;
      }
    }
    kernels::fill(model.arena->grads(), 0.5);
    model.optimizer->step(1.0f, 0.0f);
    for (const nn::Arena::Slot& slot : model.arena->slots()) {
      const auto at = static_cast<std::size_t>(slot.begin);
      EXPECT_FLOAT_EQ(static_cast<float>(values_of(model.arena->masters())[at]), static_cast<float>(before[at] - 0.5));
    }
    model.backward(2);
    EXPECT_EQ(model.arena->grads().dtype(), wire) << "the next step's are born there again";
  }
}

class EveryOptimizer : public ::testing::TestWithParam<MakeOptimizer> {};
INSTANTIATE_TEST_SUITE_P(Optimizers, EveryOptimizer, ::testing::ValuesIn(every_optimizer()),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(EveryOptimizer, UnderO3KeepsTheMastersAtWhatSixteenBitsCanHold) {
  for (const bool keep_norm : {false, true}) {
    SmallModel model(GetParam(), {.compute_dtype = DType::kFloat16,
                                  .reduced_parameters = true,
                                  .keep_norm_float32 = keep_norm,
                                  .master_weights = false});
    for (int step = 1; step <= 3; ++step) {
      model.backward(step);
      model.optimizer->step();
    }
    for (const nn::Arena::Slot& slot : model.arena->slots()) {
      EXPECT_EQ(values_of(model.arena->master(slot)), values_of(slot.parameter.tensor)) << slot.parameter.name;
    }
  }
}

TEST_P(EveryOptimizer, TakesScaledSixteenBitGradients) {
  SmallModel plain(GetParam()), scaled(GetParam());
  scaled.arena->place_gradients(Tensor::zeros({scaled.arena->size()}, DType::kFloat16, device()).storage(),
                                DType::kFloat16);
  for (int step = 1; step <= 3; ++step) {
    plain.backward(step);
    scaled.backward(step, 256);  // exactly
    for (auto& [model, inverse] : {std::pair{&plain, 1.0f}, std::pair{&scaled, 1.0f / 256}}) {
      model->optimizer->check_gradients();
      model->optimizer->step(inverse, 0.0f);
    }
  }
  EXPECT_EQ(state_of(*scaled.optimizer), state_of(*plain.optimizer));
}

TEST_P(EveryOptimizer, ContinuesFromRestoredStateToTheSameBits) {
  SmallModel through(GetParam());
  const auto step = [](SmallModel& model, int number) {
    model.backward(number);
    model.optimizer->step();
  };
  for (int number = 1; number <= 3; ++number) step(through, number);
  SmallModel resumed(GetParam());
  kernels::cast(through.arena->masters(), resumed.arena->masters());
  for (std::size_t i = 0; i < through.optimizer->state().size(); ++i) {
    kernels::cast(through.optimizer->state()[i].second, resumed.optimizer->state()[i].second);
  }
  for (std::size_t i = 0; i < through.optimizer->parameter_state().size(); ++i) {
    resumed.optimizer->parameter_state()[i].second.copy_from(through.optimizer->parameter_state()[i].second);
  }
  resumed.optimizer->parameter_steps().copy_from(through.optimizer->parameter_steps());
  resumed.optimizer->set_applied_steps(through.optimizer->applied_steps());
  step(through, 4);
  step(resumed, 4);
  EXPECT_EQ(state_of(*resumed.optimizer), state_of(*through.optimizer));
}

}  // namespace
}  // namespace lockstep::optim
