// SPDX-License-Identifier: Apache-2.0
// Optimizers and models that do not come in pairs.
#include <gmock/gmock.h>

#include "runtime/base/error.h"
#include "runtime/optim/clip.h"
#include "tests/runtime/optim/small_model.h"

namespace lockstep::optim {
namespace {

using kernels::testing::values_of;
using lockstep::devices::device;
using optim::testing::MakeOptimizer;
using optim::testing::SmallModel;
using optim::testing::with_adagrad;
using optim::testing::with_adam;
using optim::testing::with_lamb;
using optim::testing::with_lars;
using optim::testing::with_novograd;
using optim::testing::with_sgd;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<nn::Parameter> joined(const SmallModel& one, const SmallModel& two) {
  std::vector<nn::Parameter> all = one.parameters();
  for (const nn::Parameter& parameter : two.parameters()) all.push_back(parameter);
  return all;
}

/// The state's elements of each parameter, by slot.
std::vector<std::vector<double>> states_of(const Optimizer& optimizer) {
  std::vector<std::vector<double>> all;
  for (const auto& [name, flat] : optimizer.state()) {
    for (const Optimizer::Slot& slot : optimizer.slots()) all.push_back(values_of(flat.rows(slot.begin, slot.end)));
  }
  return all;
}

class SeveralModels : public ::testing::TestWithParam<MakeOptimizer> {};

TEST_P(SeveralModels, OfOneOptimizerTrainAsEachWithItsOwn) {
  SmallModel one(GetParam()), two(GetParam()), first(GetParam()), second(GetParam());
  const auto both = GetParam().of(joined(one, two));
  both->attach({one.arena, two.arena});
  for (int step = 1; step <= 3; ++step) {
    for (SmallModel* model : {&one, &first}) model->backward(step);
    for (SmallModel* model : {&two, &second}) model->backward(step + 10);
    both->step();
    first.optimizer->step();
    second.optimizer->step();
  }
  EXPECT_EQ(values_of(one.arena->masters()), values_of(first.arena->masters()));
  EXPECT_EQ(values_of(two.arena->masters()), values_of(second.arena->masters()));
  std::vector<std::vector<double>> apart = states_of(*first.optimizer);
  const std::vector<std::vector<double>> rest = states_of(*second.optimizer), together = states_of(*both);
  const std::size_t states = both->state().size();
  for (std::size_t state = 0; state < states; ++state) {
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(together[8 * state + i], apart[4 * state + i]);
      EXPECT_EQ(together[8 * state + 4 + i], rest[4 * state + i]);
    }
  }
  for (std::size_t state = 0; state < both->parameter_state().size(); ++state) {
    std::vector<double> numbers = values_of(first.optimizer->parameter_state()[state].second);
    for (const double number : values_of(second.optimizer->parameter_state()[state].second)) numbers.push_back(number);
    EXPECT_EQ(values_of(both->parameter_state()[state].second), numbers);
  }
  EXPECT_EQ(both->applied_steps(), 3);
}

TEST_P(SeveralModels, AnOverflowInOneSkipsBoth) {
  SmallModel one(GetParam()), two(GetParam());
  const auto both = GetParam().of(joined(one, two));
  both->attach({one.arena, two.arena});
  one.backward(1);
  two.backward(2);
  two.spoil(1, 0, std::numeric_limits<double>::infinity());
  const auto before = std::pair(values_of(one.arena->masters()), values_of(two.arena->masters()));
  const kernels::StepVerdict verdict = *both->step();
  EXPECT_EQ(std::pair(values_of(one.arena->masters()), values_of(two.arena->masters())), before);
  EXPECT_EQ(both->slots().at(static_cast<std::size_t>(verdict.slot)).parameter().name, "dense.bias");
  EXPECT_EQ(both->slots().at(static_cast<std::size_t>(verdict.slot)).arena, two.arena.get());
  EXPECT_EQ(both->applied_steps(), 0);
}

TEST_P(SeveralModels, SeveralOptimizersOfOneModelTrainAsOneOfAll) {
  SmallModel whole(GetParam()), parts(GetParam());
  const std::vector<nn::Parameter> all = parts.parameters();
  // Neither has neighbours in the arena.
  const auto even = GetParam().of({all[0], all[2]}), odd = GetParam().of({all[1], all[3]});
  for (Optimizer* optimizer : {even.get(), odd.get()}) optimizer->attach(parts.arena);
  for (int step = 1; step <= 3; ++step) {
    whole.backward(step);
    parts.backward(step);
    EXPECT_TRUE(even->has_new_gradients());
    even->step();
    EXPECT_FALSE(even->has_new_gradients());
    EXPECT_TRUE(odd->has_new_gradients());
    odd->step();
    whole.optimizer->step();
  }
  EXPECT_EQ(values_of(parts.arena->masters()), values_of(whole.arena->masters()));
}

TEST_P(SeveralModels, AnOptimizersZeroGradLeavesTheGradientsOfOthers) {
  SmallModel model(GetParam());
  const std::vector<nn::Parameter> all = model.parameters();
  const auto weights = GetParam().of({all[0], all[2]}), biases = GetParam().of({all[1], all[3]});
  for (Optimizer* optimizer : {weights.get(), biases.get()}) optimizer->attach(model.arena);
  model.backward(1);
  const std::vector<double> bias = values_of(all[1].tensor.grad());
  weights->zero_grad();
  EXPECT_FALSE(all[0].tensor.grad().defined());
  EXPECT_EQ(values_of(all[1].tensor.grad()), bias);
  const std::vector<double> before = values_of(all[0].tensor);
  weights->step();
  EXPECT_EQ(values_of(all[0].tensor), before);
  biases->zero_grad();
  EXPECT_FALSE(all[1].tensor.grad().defined());
}

INSTANTIATE_TEST_SUITE_P(Optimizers, SeveralModels,
                         ::testing::Values(with_sgd({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01}),
                                           with_adam({.lr = 0.01, .weight_decay = 0.1}),
                                           with_sgd({.lr = 0.1, .momentum = 0.9}, {.clip_value = 0.5}),
                                           with_adagrad({.lr = 0.1, .lr_decay = 0.1}),
                                           with_lamb({.lr = 0.1, .weight_decay = 0.1, .max_grad_norm = 0}),
                                           with_novograd({.lr = 0.1, .weight_decay = 0.1}),
                                           with_lars({.lr = 1, .weight_decay = 0.1, .trust_coefficient = 0.1}),
                                           with_sgd({.lr = 0.1, .momentum = 0.9}, {.larc = LarcOptions{}})),
                         [](const auto& test) { return std::string(test.param.name) + std::to_string(test.index); });

TEST(SeveralModelsOfAnOptimizer, AreClippedByTheirCommonNorm) {
  const MakeOptimizer clipping = with_sgd({.lr = 1}, {.clip_norm = 1}), plain = with_sgd({.lr = 1});
  SmallModel one(plain), two(plain), first(plain), second(plain);
  const auto both = clipping.of(joined(one, two)), after = plain.of(joined(first, second));
  both->attach({one.arena, two.arena});
  after->attach({first.arena, second.arena});
  for (SmallModel* model : {&one, &first}) model->backward(1);
  for (SmallModel* model : {&two, &second}) model->backward(2);
  both->check_gradients();
  both->step(1.0f, 0.0f);
  clip_grad_norm_(joined(first, second), 1);
  after->step(1.0f, 0.0f);
  kernels::testing::expect_close(one.arena->masters(), first.arena->masters(), {.relative = 1e-6, .absolute = 1e-7});
  kernels::testing::expect_close(two.arena->masters(), second.arena->masters(), {.relative = 1e-6, .absolute = 1e-7});
  EXPECT_GT(both->gradient_norm(), 1);
}

TEST(SeveralModelsOfAnOptimizer, UnscalingOneOptimizersGradientsLeavesThoseOfTheOther) {
  SmallModel model(with_sgd({.lr = 1}));
  model.arena->place_gradients(Tensor::zeros({model.arena->size()}, DType::kFloat16, device()).storage(),
                               DType::kFloat16);
  const std::vector<nn::Parameter> all = model.parameters();
  const auto first = with_sgd({.lr = 1}).of({all[0], all[2]}), second = with_sgd({.lr = 1}).of({all[1], all[3]});
  for (Optimizer* optimizer : {first.get(), second.get()}) optimizer->attach(model.arena);
  model.backward(1);
  std::vector<double> scaled = values_of(all[0].tensor.grad()), other = values_of(all[1].tensor.grad());
  const DeviceValue<float> inverse(0x1p-20f, device());
  first->unscale_gradients(inverse.data());
  EXPECT_EQ(values_of(all[1].tensor.grad()), other);
  for (double& value : scaled) value *= 0x1p-20;
  EXPECT_EQ(values_of(all[0].tensor.grad()), scaled);
}

TEST(SeveralModelsOfAnOptimizer, HaveNoSingleArena) {
  SmallModel one(with_sgd({.lr = 1})), two(with_sgd({.lr = 1}));
  const auto both = sgd(joined(one, two), {.lr = 1});
  EXPECT_THAT([&] { both->attach({one.arena}); },
              ThrowsMessage<UsageError>(HasSubstr("no model here has the optimizer's parameter dense.weight")));
  both->attach({two.arena, one.arena});
  EXPECT_THAT([&] { both->arena(); }, ThrowsMessage<UsageError>(HasSubstr("updates 2 models")));
  EXPECT_EQ(both->arenas().size(), 2u);
}

TEST(Groups, MayListTheirParametersAndNameTheirRate) {
  SmallModel model(with_sgd({.lr = 1}));
  const std::vector<nn::Parameter> all = model.parameters();
  const auto rates = [&](const OptimizerOptions& options) {
    std::vector<float> each;
    for (const ParameterOptions& own : resolve_groups(options.groups, all, 0.5, 0.125)) each.push_back(own.lr_scale);
    return each;
  };
  EXPECT_THAT(rates({.groups = {{.parameters = {all[1], all[3]}, .lr = 0.05}, {.match = "norm", .lr_scale = 3}}}),
              ::testing::ElementsAre(1, 0.1f, 3, 0.1f));
  const auto refused = [&](const std::vector<ParameterGroup>& groups, const char* message) {
    EXPECT_THAT([&] { sgd(all, {.lr = 0.5}, {.groups = groups}); }, ThrowsMessage<FieldError>(HasSubstr(message)));
  };
  const SmallModel stranger(with_sgd({.lr = 1}));
  refused({{.parameters = stranger.parameters()}}, "group[0].parameters: the optimizer does not have parameter dense");
  refused({{.match = "bias", .parameters = {all[0]}}}, "group[0].match: names parameters of a group that has a list");
  refused({{.lr_scale = 2, .parameters = {all[0]}, .lr = 1}}, "group[0].lr: and lr_scale contradict each other");
  refused({{.parameters = {all[0]}, .lr = -1}}, "group[0].lr: must be >= 0, is -1");
  refused({{.match = "dense"}, {.parameters = {all[0]}}}, "group[1].parameters: names no parameter that an earlier");
}

}  // namespace
}  // namespace lockstep::optim
