// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "runtime/base/error.h"
#include "runtime/nn/layers.h"
#include "runtime/optim/adagrad.h"
#include "runtime/optim/adam.h"
#include "runtime/optim/any_optimizer.h"
#include "runtime/optim/lamb.h"
#include "runtime/optim/lars.h"
#include "runtime/optim/novograd.h"
#include "runtime/optim/sgd.h"

namespace lockstep::optim {
namespace {

using ::testing::ThrowsMessage;

std::vector<nn::Parameter> parameters() {
  static nn::Linear layer(2, 2);
  return layer.parameters();
}

void expect_refused(const SgdOptions& options, const char* message) {
  EXPECT_THAT([&] { sgd(parameters(), options); }, ThrowsMessage<FieldError>(message));
}
void expect_refused(const AdamOptions& options, const char* message) {
  EXPECT_THAT([&] { adam(parameters(), options); }, ThrowsMessage<FieldError>(message));
}
void expect_refused(const AdamwOptions& options, const char* message) {
  EXPECT_THAT([&] { adamw(parameters(), options); }, ThrowsMessage<FieldError>(message));
}
void expect_refused(const AdagradOptions& options, const char* message) {
  EXPECT_THAT([&] { adagrad(parameters(), options); }, ThrowsMessage<FieldError>(message));
}
void expect_refused(const LambOptions& options, const char* message) {
  EXPECT_THAT([&] { lamb(parameters(), options); }, ThrowsMessage<FieldError>(message));
}
void expect_refused(const NovogradOptions& options, const char* message) {
  EXPECT_THAT([&] { novograd(parameters(), options); }, ThrowsMessage<FieldError>(message));
}
void expect_refused(const LarsOptions& options, const char* message) {
  EXPECT_THAT([&] { lars(parameters(), options); }, ThrowsMessage<FieldError>(message));
}
void expect_refused(const OptimizerOptions& options, const std::string& message) {
  EXPECT_THAT([&] { sgd(parameters(), {.lr = 1}, options); },
              ThrowsMessage<FieldError>(::testing::StartsWith("optimizer." + message)));
}

TEST(SgdOptions, AreCheckedWhereTheOptimizerIsMade) {
  expect_refused(SgdOptions{}, "optimizer.sgd.lr: must be > 0, is 0");
  expect_refused(SgdOptions{.lr = -0.1}, "optimizer.sgd.lr: must be > 0, is -0.1");
  expect_refused(SgdOptions{.lr = std::nan("")}, "optimizer.sgd.lr: must be > 0, is nan");
  expect_refused(SgdOptions{.lr = 1, .momentum = 1}, "optimizer.sgd.momentum: must be >= 0 and < 1, is 1");
  expect_refused(SgdOptions{.lr = 1, .weight_decay = -1}, "optimizer.sgd.weight_decay: must be >= 0, is -1");
  expect_refused(SgdOptions{.lr = 1, .dampening = 1.5}, "optimizer.sgd.dampening: must be >= 0 and < 1, is 1.5");
  const char* const nesterov = "optimizer.sgd.nesterov: needs momentum > 0 and dampening 0";
  expect_refused(SgdOptions{.lr = 1, .nesterov = true}, nesterov);
  expect_refused(SgdOptions{.lr = 1, .momentum = 0.9, .nesterov = true, .dampening = 0.1}, nesterov);
  EXPECT_NO_THROW(sgd(parameters(), {.lr = 1, .momentum = 0.9, .nesterov = true}));
}

TEST(AdamOptions, AreCheckedWhereTheOptimizerIsMade) {
  expect_refused(AdamOptions{}, "optimizer.adam.lr: must be > 0, is 0");
  expect_refused(AdamOptions{.lr = 1, .beta1 = 1}, "optimizer.adam.beta1: must be >= 0 and < 1, is 1");
  expect_refused(AdamOptions{.lr = 1, .beta2 = -0.5}, "optimizer.adam.beta2: must be >= 0 and < 1, is -0.5");
  expect_refused(AdamOptions{.lr = 1, .epsilon = 0}, "optimizer.adam.epsilon: must be > 0, is 0");
  expect_refused(AdamOptions{.lr = 1, .weight_decay = -1}, "optimizer.adam.weight_decay: must be >= 0, is -1");
  expect_refused(AdamwOptions{.lr = 1, .beta2 = 1}, "optimizer.adamw.beta2: must be >= 0 and < 1, is 1");
}

TEST(AdagradOptions, AreCheckedWhereTheOptimizerIsMade) {
  expect_refused(AdagradOptions{}, "optimizer.adagrad.lr: must be > 0, is 0");
  expect_refused(AdagradOptions{.lr = 1, .lr_decay = -1}, "optimizer.adagrad.lr_decay: must be >= 0, is -1");
  expect_refused(AdagradOptions{.lr = 1, .weight_decay = -1}, "optimizer.adagrad.weight_decay: must be >= 0, is -1");
  expect_refused(AdagradOptions{.lr = 1, .initial_accumulator_value = -1},
                 "optimizer.adagrad.initial_accumulator_value: must be >= 0, is -1");
  expect_refused(AdagradOptions{.lr = 1, .epsilon = 0}, "optimizer.adagrad.epsilon: must be > 0, is 0");
}

TEST(LambOptions, AreCheckedWhereTheOptimizerIsMade) {
  expect_refused(LambOptions{}, "optimizer.lamb.lr: must be > 0, is 0");
  expect_refused(LambOptions{.lr = 1, .beta1 = 1}, "optimizer.lamb.beta1: must be >= 0 and < 1, is 1");
  expect_refused(LambOptions{.lr = 1, .beta2 = 1}, "optimizer.lamb.beta2: must be >= 0 and < 1, is 1");
  expect_refused(LambOptions{.lr = 1, .epsilon = 0}, "optimizer.lamb.epsilon: must be > 0, is 0");
  expect_refused(LambOptions{.lr = 1, .weight_decay = -1}, "optimizer.lamb.weight_decay: must be >= 0, is -1");
  expect_refused(LambOptions{.lr = 1, .max_grad_norm = -1}, "optimizer.lamb.max_grad_norm: must be >= 0, is -1");
}

TEST(NovogradOptions, AreCheckedWhereTheOptimizerIsMade) {
  expect_refused(NovogradOptions{}, "optimizer.novograd.lr: must be > 0, is 0");
  expect_refused(NovogradOptions{.lr = 1, .beta1 = -1}, "optimizer.novograd.beta1: must be >= 0 and < 1, is -1");
  expect_refused(NovogradOptions{.lr = 1, .epsilon = -1}, "optimizer.novograd.epsilon: must be > 0, is -1");
}

TEST(LarsOptions, AreCheckedWhereTheOptimizerIsMade) {
  expect_refused(LarsOptions{}, "optimizer.lars.lr: must be > 0, is 0");
  expect_refused(LarsOptions{.lr = 1, .momentum = 1}, "optimizer.lars.momentum: must be >= 0 and < 1, is 1");
  expect_refused(LarsOptions{.lr = 1, .weight_decay = -1}, "optimizer.lars.weight_decay: must be >= 0, is -1");
  expect_refused(LarsOptions{.lr = 1, .trust_coefficient = 0}, "optimizer.lars.trust_coefficient: must be > 0, is 0");
  expect_refused(LarsOptions{.lr = 1, .epsilon = -1}, "optimizer.lars.epsilon: must be >= 0, is -1");
  expect_refused(LarsOptions{.lr = 1, .momentum = 0, .nesterov = true}, "optimizer.lars.nesterov: needs momentum > 0");
}

TEST(SgdOptions, WithAMomentumThatIsNoneToAFloatAreWithoutOne) {
  EXPECT_TRUE(sgd(parameters(), {.lr = 1, .momentum = 1e-46})->state_names().empty());
  EXPECT_TRUE(lars(parameters(), {.lr = 1, .momentum = 1e-46})->state_names().empty());
  EXPECT_EQ(rmsprop(parameters(), {.lr = 1, .momentum = 1e-46})->state_names().size(), 1u);
}

/// Sets each field below its bound, one after the other: the optimizer is refused with its name.
template <class Options>
void expect_bounds_held() {
  for_each_field<Options>([](const auto& field) {
    using Value = std::remove_cvref_t<decltype(Options().*field.member)>;
    if constexpr (std::is_same_v<Value, double>) {
      Options options;
      options.lr = 1;
      options.*field.member = field.bound->low - 1;
      const std::string at = "optimizer." + std::string(Options::kKind) + "." + std::string(field.name);
      EXPECT_THAT([&] { make(parameters(), options); },
                  ThrowsMessage<FieldError>(::testing::StartsWith(at + ": must be")));
    }
  });
}

template <class... Options>
void expect_all_bounds_held(std::type_identity<std::variant<Options...>>) {
  (expect_bounds_held<Options>(), ...);
}

TEST(OptionsOfEveryOptimizer, AreCheckedWhereItIsMade) { expect_all_bounds_held(std::type_identity<AnyOptions>()); }

TEST(LarcOptions, AreCheckedAndRefusedBesideRulesThatLookAtNorms) {
  expect_refused(OptimizerOptions{.larc = LarcOptions{.trust_coefficient = 0}},
                 "larc.trust_coefficient: must be > 0, is 0");
  expect_refused(OptimizerOptions{.larc = LarcOptions{.epsilon = -1}}, "larc.epsilon: must be >= 0, is -1");
  EXPECT_EQ(problems_of(OptimizerOptions{.larc = LarcOptions{.trust_coefficient = 0, .epsilon = -1}}).size(), 2u);
  const OptimizerOptions larc{.larc = LarcOptions{}};
  const auto refused = ThrowsMessage<FieldError>(::testing::StartsWith("optimizer.larc: cannot be used with lamb"));
  EXPECT_THAT([&] { lamb(parameters(), {.lr = 1}, larc); }, refused);
  EXPECT_THAT([&] { lars(parameters(), {.lr = 1}, larc); }, refused);
  EXPECT_THAT([&] { novograd(parameters(), {.lr = 1}, larc); }, refused);
  EXPECT_THAT([&] { lion(parameters(), {.lr = 1}, larc); }, refused);
  EXPECT_NO_THROW(rmsprop(parameters(), {.lr = 1}, larc));
  EXPECT_NO_THROW(adagrad(parameters(), {.lr = 1}, larc));
}

TEST(OptimizerOptions, AreCheckedWhereTheOptimizerIsMade) {
  expect_refused(OptimizerOptions{.clip_norm = 0}, "clip_norm: must be > 0, is 0");
  expect_refused(OptimizerOptions{.clip_value = -1}, "clip_value: must be > 0, is -1");
  expect_refused(OptimizerOptions{.groups = {{.match = "weight", .lr_scale = -1}}},
                 "group[0].lr_scale: must be >= 0, is -1");
  expect_refused(OptimizerOptions{.groups = {{.match = "weight"}, {.match = "bias", .weight_decay = -1}}},
                 "group[1].weight_decay: must be >= 0, is -1");
  expect_refused(OptimizerOptions{.groups = {{}}}, "group[0].match: must be a regular expression");
  expect_refused(OptimizerOptions{.groups = {{.match = "["}}}, "group[0].match: \"[\" is no regular expression");
  expect_refused(OptimizerOptions{.groups = {{.match = "(?=a)"}}},
                 "group[0].match: \"(?=a)\" is no regular expression");
}

}  // namespace
}  // namespace lockstep::optim
