// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "runtime/autograd/meta.h"
#include "tests/runtime/optim/small_model.h"

namespace lockstep::optim {
namespace {

using kernels::testing::expect_close;
using optim::testing::MakeOptimizer;
using optim::testing::SmallModel;
using optim::testing::values_of;
using optim::testing::with_adam;
using optim::testing::with_adamw;
using optim::testing::with_sgd;

/// One parameter as the papers (and PyTorch) update it, in float64.
struct Plain {
  explicit Plain(const Tensor& parameter) : weight(values_of(parameter)), m(weight.size()), v(weight.size()) {}
  std::vector<double> weight, m, v;
  double decay = 0;
  double lr_scale = 1;
};

using Rule =
    std::function<void(double& weight, double gradient, double& m, double& v, double lr, double decay, int step)>;

struct SgdRule {
  double momentum = 0, dampening = 0;
  bool nesterov = false;

  void operator()(double& weight, double gradient, double& buffer, double&, double lr, double decay, int step) const {
    double g = gradient + decay * weight;
    if (momentum != 0) {
      buffer = step == 1 ? g : momentum * buffer + (1 - dampening) * g;
      g = nesterov ? g + momentum * buffer : buffer;
    }
    weight -= lr * g;
  }
};

struct AdamRule {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool decoupled = false;

  void operator()(double& weight, double gradient, double& m, double& v, double lr, double decay, int step) const {
    const double g = decoupled ? gradient : gradient + decay * weight;
    if (decoupled) weight -= lr * decay * weight;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    weight -= lr / (1 - std::pow(beta1, step)) * m / (std::sqrt(v) / std::sqrt(1 - std::pow(beta2, step)) + epsilon);
  }
};

struct Clipping {
  double norm = 0, value = 0;
};

struct Case {
  const char* name;
  MakeOptimizer optimizer;
  Rule rule;
  double lr;
  double decay = 0;
  Clipping clipping = {};
};

void PrintTo(const Case& the_case, std::ostream* out) { *out << the_case.name; }

/// Ten steps beside the plain rule: weights decay, norms and biases do not.
class UpdateTest : public ::testing::TestWithParam<Case> {
 protected:
  /// The norm of all gradients of a step.
  static double norm_of(const SmallModel& model, int step) {
    double squares = 0;
    for (std::size_t i = 0; i < model.parameters().size(); ++i) {
      for (const double g : model.gradient_of(i, step)) squares += g * g;
    }
    return std::sqrt(squares);
  }

  static void run(SmallModel& model, double scale) {
    const Case& c = GetParam();
    std::vector<Plain> plain;
    for (const nn::Parameter& parameter : model.parameters()) {
      plain.emplace_back(parameter.tensor);
      if (parameter.kind == nn::ParameterKind::kWeight) plain.back().decay = c.decay;
    }
    for (int step = 1; step <= 10; ++step) {
      model.backward(step, scale);
      model.optimizer->check_gradients();
      model.optimizer->step(static_cast<float>(1 / scale), 0.0f);
      EXPECT_EQ(model.optimizer->applied_steps(), step);
      double factor = 1;
      if (c.clipping.norm > 0) {
        const double norm = norm_of(model, step);
        EXPECT_NEAR(model.optimizer->gradient_norm(), norm, 1e-6 * norm);
        factor = std::min(1.0, c.clipping.norm / (norm + 1e-6));
      }
      for (std::size_t i = 0; i < plain.size(); ++i) {
        const std::vector<double> gradient = model.gradient_of(i, step);
        for (std::size_t j = 0; j < gradient.size(); ++j) {
          double g = gradient[j] * factor;
          if (c.clipping.value > 0) g = std::clamp(g, -c.clipping.value, c.clipping.value);
          c.rule(plain[i].weight[j], g, plain[i].m[j], plain[i].v[j], c.lr, plain[i].decay, step);
        }
      }
    }
    for (std::size_t i = 0; i < plain.size(); ++i) {
      SCOPED_TRACE(model.parameters()[i].name);
      // Some ten roundings of numbers about 1, for each of ten steps.
      expect_close(model.arena->master(model.arena->slots()[plain.size() - 1 - i]), plain[i].weight,
                   {.relative = 1e-5, .absolute = 1e-5});
    }
  }
};

TEST_P(UpdateTest, FollowsThePlainRule) {
  SmallModel model(GetParam().optimizer);
  run(model, 1.0);
}

TEST_P(UpdateTest, UnscalesScaledGradients) {
  SmallModel model(GetParam().optimizer);
  run(model, 1024.0);
}

TEST_P(UpdateTest, TakesSixteenBitGradients) {
  SmallModel model(GetParam().optimizer);
  const Tensor wire = Tensor::zeros({model.arena->size()}, DType::kFloat16, optim::testing::device());
  model.arena->place_gradients(wire.storage(), DType::kFloat16);
  run(model, 256.0);
}

TEST_P(UpdateTest, KeepsTheComputeCopiesRoundedMasters) {
  SmallModel model(GetParam().optimizer, {.compute_dtype = DType::kBFloat16});
  run(model, 1.0);
  const nn::Arena& arena = *model.arena;
  for (const nn::Arena::Slot& slot : arena.slots()) {
    EXPECT_EQ(values_of(arena.copies().rows(slot.begin, slot.end)),
              values_of(ops::cast(arena.masters().rows(slot.begin, slot.end), DType::kBFloat16)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, UpdateTest,
    ::testing::Values(
        Case{"sgd", with_sgd({.lr = 0.1}), SgdRule{}, 0.1},
        Case{"sgd_decay", with_sgd({.lr = 0.1, .weight_decay = 0.05}), SgdRule{}, 0.1, 0.05},
        Case{"momentum", with_sgd({.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01}), SgdRule{0.9}, 0.05, 0.01},
        Case{"dampening", with_sgd({.lr = 0.05, .momentum = 0.9, .dampening = 0.4}), SgdRule{0.9, 0.4}, 0.05},
        Case{"nesterov", with_sgd({.lr = 0.05, .momentum = 0.8, .nesterov = true}), SgdRule{0.8, 0, true}, 0.05},
        Case{"adam", with_adam({.lr = 0.01}), AdamRule{}, 0.01},
        Case{"adam_decay", with_adam({.lr = 0.01, .beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-3, .weight_decay = 0.1}),
             AdamRule{0.8, 0.99, 1e-3}, 0.01, 0.1},
        Case{"adamw", with_adamw({.lr = 0.01}), AdamRule{.decoupled = true}, 0.01, 0.01},
        Case{"clip_norm",
             with_sgd({.lr = 0.1, .momentum = 0.9}, {.clip_norm = 1.5}),
             SgdRule{0.9},
             0.1,
             0,
             {.norm = 1.5}},
        Case{"clip_norm_never", with_sgd({.lr = 0.1}, {.clip_norm = 1e6}), SgdRule{}, 0.1, 0, {.norm = 1e6}},
        Case{"clip_value", with_adam({.lr = 0.01}, {.clip_value = 0.25}), AdamRule{}, 0.01, 0, {.value = 0.25}},
        Case{"clip_both",
             with_sgd({.lr = 0.1, .weight_decay = 0.05}, {.clip_norm = 4, .clip_value = 0.5}),
             SgdRule{},
             0.1,
             0.05,
             {.norm = 4, .value = 0.5}}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace lockstep::optim
