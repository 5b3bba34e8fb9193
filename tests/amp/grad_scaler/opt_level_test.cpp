// SPDX-License-Identifier: Apache-2.0
#include "amp/grad_scaler/opt_level.h"

#include <gmock/gmock.h>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/engine.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/state_dict.h"
#include "tests/amp/grad_scaler/scaled_model.h"

namespace lockstep::amp {
namespace {

using amp::testing::device;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Level {
  AmpOptions options;
  OptLevelProperties expected;
};

TEST(OptLevel, StandsForApexsTable) {
  constexpr DType kHalf = DType::kFloat16, kBrain = DType::kBFloat16;
  const Level levels[] = {
      {{}, {}},
      {{.opt_level = OptLevel::kO0}, {DType::kFloat32, false, false, true, true}},
      {{.opt_level = OptLevel::kO1}, {kHalf, true, false, true, true}},
      {{.opt_level = OptLevel::kO2}, {kHalf, false, true, true, true}},
      {{.opt_level = OptLevel::kO3}, {kHalf, false, true, false, false}},
      {{.opt_level = OptLevel::kO1, .dtype = kBrain}, {kBrain, true, false, true, true}},
      {{.opt_level = OptLevel::kO2, .keep_batch_norm_fp32 = false}, {kHalf, false, true, false, true}},
      {{.opt_level = OptLevel::kO2, .master_weights = false}, {kHalf, false, true, true, false}},
      {{.opt_level = OptLevel::kO3, .keep_batch_norm_fp32 = true}, {kHalf, false, true, true, false}},
      {{.opt_level = OptLevel::kO3, .dtype = kBrain, .master_weights = true}, {kBrain, false, true, false, true}},
  };
  for (std::size_t i = 0; i < std::size(levels); ++i) {
    EXPECT_EQ(properties_of(levels[i].options), levels[i].expected) << "level " << i;
  }
}

void expect_refused(const AmpOptions& options, const std::string& message) {
  EXPECT_THAT([&] { properties_of(options); }, ThrowsMessage<FieldError>(::testing::StartsWith("amp." + message)));
}

TEST(OptLevel, ThatContradictsItsDtypeIsAnError) {
  expect_refused({.dtype = DType::kFloat16}, "dtype: FP16 contradicts opt_level O0, which computes in FP32");
  expect_refused({.dtype = DType::kBFloat16}, "dtype: BF16 contradicts opt_level O0, which computes in FP32");
  for (const auto& [level, name] :
       {std::pair{OptLevel::kO1, "O1"}, std::pair{OptLevel::kO2, "O2"}, std::pair{OptLevel::kO3, "O3"}}) {
    expect_refused({.opt_level = level, .dtype = DType::kFloat32},
                   std::string("dtype: FP32 contradicts opt_level ") + name + "; use O0, or FP16 or BF16 here");
    expect_refused({.opt_level = level, .dtype = DType::kInt64},
                   "dtype: must be float32, float16 or bfloat16, is int64");
  }
}

TEST(OptLevel, WithFloat32WeightsHasMasterWeights) {
  expect_refused({.master_weights = false}, "master_weights: cannot be false under O0");
  expect_refused({.opt_level = OptLevel::kO1, .master_weights = false}, "master_weights: cannot be false under O1");
}

TEST(OptLevel, WithFloat32WeightsKeepsBatchNormInFloat32) {
  expect_refused({.keep_batch_norm_fp32 = false}, "keep_batch_norm_fp32: cannot be false under O0");
  expect_refused({.opt_level = OptLevel::kO1, .keep_batch_norm_fp32 = false},
                 "keep_batch_norm_fp32: cannot be false under O1");
  EXPECT_FALSE(properties_of({.opt_level = OptLevel::kO2, .keep_batch_norm_fp32 = false}).keep_batch_norm_fp32);
}

/// A classifier with everything that levels treat differently.
struct Classifier {
  explicit Classifier(const AmpOptions& amp) : options(amp) {
    net.add<nn::Linear>("hidden", 6, 16);
    net.add<nn::BatchNorm>("norm", 16, nn::BatchNormOptions{.relu = true});
    net.add<nn::Dropout>("dropout", 0.1);
    net.add<nn::Linear>("output", 16, 3);
    nn::initialize(net, 5);
    optimizer = optim::sgd(net.parameters(), {.lr = 0.2, .momentum = 0.9});
    initialize(net, *optimizer, options, device());
  }

  Tensor loss() { return ops::cross_entropy(nn::forward(net, x), classes); }

  AmpOptions options;
  nn::Sequential net;
  std::unique_ptr<optim::Optimizer> optimizer;
  const Tensor x = kernels::testing::random_tensor({32, 6}, DType::kFloat32, 9).to(device());
  const Tensor classes = classes_of(x.to(kCpu)).to(device());

 private:
  /// Which of the first three features is the largest.
  static Tensor classes_of(const Tensor& x) {
    std::vector<std::int64_t> largest;
    for (std::int64_t row = 0; row < x.size(0); ++row) {
      std::int64_t best = 0;
      for (std::int64_t c = 1; c < 3; ++c) best = x.item(row * 6 + c) > x.item(row * 6 + best) ? c : best;
      largest.push_back(best);
    }
    return Tensor::from(largest, {x.size(0)});
  }
};

struct Named {
  const char* name;
  AmpOptions options;
  GradScalerOptions scaler = {.dynamic = false, .init = 1};
};

void PrintTo(const Named& level, std::ostream* out) { *out << level.name; }

class EveryLevel : public ::testing::TestWithParam<Named> {};

TEST_P(EveryLevel, TrainsAndItsLossFalls) {
  Classifier model(GetParam().options);
  GradScaler scaler(comm::make_self_communicator(device()), GetParam().scaler);
  const double before = model.loss().item();
  int skips = 0;
  for (int step = 0; step < 40; ++step) {
    model.optimizer->zero_grad();
    scaler.scale(model.loss()).backward();
    skips += (*scaler.step(*model.optimizer)).found_inf ? 1 : 0;
    scaler.update();
  }
  EXPECT_LT(model.loss().item(), 0.5 * before);
  EXPECT_LT(skips, 10);
  EXPECT_EQ(model.optimizer->applied_steps(), 40 - skips);
}

TEST(OptLevel, ThatKeepsNormsInFloat32DoesSoWithoutMastersToo) {
  for (const AmpOptions& options : {AmpOptions{.opt_level = OptLevel::kO3, .keep_batch_norm_fp32 = true},
                                    AmpOptions{.opt_level = OptLevel::kO2, .master_weights = false}}) {
    Classifier model(options);
    for (int step = 0; step < 3; ++step) {
      model.optimizer->zero_grad();
      model.loss().backward();
      model.optimizer->step();
    }
    for (const nn::Arena::Slot& slot : model.net.arena()->slots()) {
      int rounded = 0;
      for (const double value : amp::testing::values_of(model.net.arena()->master(slot))) {
        rounded += static_cast<double>(Half(static_cast<float>(value))) == value ? 1 : 0;
      }
      const bool norm = slot.parameter.kind == nn::ParameterKind::kNorm;
      EXPECT_EQ(rounded == slot.end - slot.begin, !norm)
          << "O" << static_cast<int>(options.opt_level) << ": " << slot.parameter.name;
    }
  }
}

TEST_P(EveryLevel, NoticesAWeightThatIsWrittenBeforeTheBackwardPassThatNeedsIt) {
  Classifier model(GetParam().options);
  const Tensor weight = model.net.parameters()[4].tensor;
  const auto is_noticed =
      ThrowsMessage<UsageError>(::testing::AllOf(HasSubstr("parameter output.weight"), HasSubstr("'linear'")));
  const Tensor written = model.loss();
  weight.copy_from(Tensor::zeros(weight.shape(), weight.dtype()));
  EXPECT_THAT([&] { written.backward(); }, is_noticed);
  const Tensor stepped = model.loss();
  model.optimizer->zero_grad();
  model.loss().backward();
  model.optimizer->step();
  EXPECT_THAT([&] { stepped.backward(); }, is_noticed);
}

TEST_P(EveryLevel, UsesAndKeepsAWeightThatTheUserWrote) {
  Classifier model(GetParam().options);
  const Tensor weight = model.net.parameters()[4].tensor;
  const nn::Arena& arena = *model.net.arena();
  const auto output = [&model] {
    model.net.train(false);
    const std::vector<double> y = amp::testing::values_of(nn::forward(model.net, model.x));
    model.net.train();
    return y;
  };
  const auto is_bias_alone = [](const std::vector<double>& y) {
    for (std::size_t i = 3; i < y.size(); ++i) {
      if (y[i] != y[i - 3]) return false;
    }
    return true;
  };
  EXPECT_FALSE(is_bias_alone(output()));
  weight.copy_from(Tensor::zeros(weight.shape(), weight.dtype()));
  EXPECT_TRUE(is_bias_alone(output()));
  EXPECT_THAT(amp::testing::values_of(arena.master(arena.slots()[1])), ::testing::Each(0)) << "output.weight";
  // A step that would move nothing, right after a write.
  model.optimizer->set_learning_rate(0);
  model.optimizer->zero_grad();
  model.loss().backward();
  weight.copy_from(Tensor::zeros(weight.shape(), weight.dtype()));
  model.optimizer->step();
  EXPECT_TRUE(is_bias_alone(output()));
  EXPECT_THAT(amp::testing::values_of(weight), ::testing::Each(0));
}

TEST(OptLevel, WithoutMastersRoundsWhatIsLoaded) {
  Classifier model({.opt_level = OptLevel::kO3});
  nn::StateDict state;
  for (const auto& [name, tensor] : nn::state_dict(model.net)) {
    state[name] = Tensor::empty(tensor.shape(), tensor.dtype());
    kernels::fill(state[name], 1.0001);
  }
  nn::load_state_dict(model.net, state);
  const nn::StateDict loaded = nn::state_dict(model.net);
  for (const nn::Parameter& parameter : model.net.parameters()) {
    EXPECT_THAT(amp::testing::values_of(loaded.at(parameter.name)), ::testing::Each(1)) << parameter.name;
  }
}

TEST_P(EveryLevel, RefusesGradientsWithAGraphInItsArena) {
  Classifier model(GetParam().options);
  EXPECT_THAT([&] { autograd::backward(model.loss(), {}, {.create_graph = true}); },
              ::testing::ThrowsMessage<UsageError>(::testing::HasSubstr("lies in an arena and can have no graph")));
}

TEST_P(EveryLevel, LetsGradientsAddUpAndOptimizersTakeTurns) {
  Classifier model(GetParam().options), other(GetParam().options);
  for (int step = 0; step < 3; ++step) {
    model.optimizer->zero_grad();
    const Tensor first = model.loss(), second = model.loss(), of_other = other.loss();
    autograd::backward(first, {}, {.retain_graph = true});
    first.backward();
    second.backward();
    model.optimizer->step();
    other.optimizer->zero_grad();
    of_other.backward();
    other.optimizer->step();
  }
}

TEST_P(EveryLevel, EvaluatesToFloat32LossesAndFiniteOutputs) {
  Classifier model(GetParam().options);
  model.net.train(false);
  const Tensor y = nn::forward(model.net, model.x);
  for (const double value : amp::testing::values_of(y)) EXPECT_TRUE(std::isfinite(value));
  EXPECT_EQ(model.loss().dtype(), DType::kFloat32);
  EXPECT_FALSE(Autocast::enabled());
}

INSTANTIATE_TEST_SUITE_P(
    Levels, EveryLevel,
    ::testing::Values(Named{"O0", {.opt_level = OptLevel::kO0}},  //
                      Named{"O1", {.opt_level = OptLevel::kO1}, {}}, Named{"O2", {.opt_level = OptLevel::kO2}, {}},
                      Named{"O3", {.opt_level = OptLevel::kO3}},
                      Named{"O1Bf16", {.opt_level = OptLevel::kO1, .dtype = DType::kBFloat16}},
                      Named{"O2Bf16", {.opt_level = OptLevel::kO2, .dtype = DType::kBFloat16}},
                      Named{"O3Bf16", {.opt_level = OptLevel::kO3, .dtype = DType::kBFloat16}},
                      Named{"O2WithNormsIn16Bits", {.opt_level = OptLevel::kO2, .keep_batch_norm_fp32 = false}, {}},
                      Named{"O3WithMasterWeights", {.opt_level = OptLevel::kO3, .master_weights = true}}),
    [](const auto& instance) { return std::string(instance.param.name); });

/// The logits show the dtype of the last operation: a linear layer.
TEST(Initialize, TellsForwardPassesTheLevel) {
  const auto logits = [](const AmpOptions& options) {
    Classifier model(options);
    return nn::forward(model.net, model.x);
  };
  EXPECT_EQ(logits({.opt_level = OptLevel::kO0}).dtype(), DType::kFloat32);
  EXPECT_EQ(logits({.opt_level = OptLevel::kO1}).dtype(), DType::kFloat16);
  EXPECT_EQ(logits({.opt_level = OptLevel::kO1, .dtype = DType::kBFloat16}).dtype(), DType::kBFloat16);
  for (const OptLevel level : {OptLevel::kO2, OptLevel::kO3}) {
    const Tensor back = logits({.opt_level = level});
    EXPECT_EQ(back.dtype(), DType::kFloat32);
    for (const double value : amp::testing::values_of(back)) {
      EXPECT_EQ(static_cast<double>(Half(static_cast<float>(value))), value);
    }
  }
}

TEST(Initialize, IsForAModelOnce) {
  Classifier model({.opt_level = OptLevel::kO1});
  EXPECT_THAT([&] { initialize(model.net, *model.optimizer, model.options); },
              ThrowsMessage<UsageError>(HasSubstr("was called on this model before")));
}

TEST(Initialize, MakesTheWeightsWhatTheLevelSays) {
  const auto dtypes = [](OptLevel level) {
    Classifier model({.opt_level = level});
    std::vector<DType> all;
    for (const nn::Parameter& parameter : model.net.parameters()) all.push_back(parameter.tensor.dtype());
    return all;
  };
  const DType single = DType::kFloat32, half = DType::kFloat16;
  EXPECT_THAT(dtypes(OptLevel::kO0), ::testing::Each(single));
  EXPECT_THAT(dtypes(OptLevel::kO1), ::testing::Each(single));
  EXPECT_THAT(dtypes(OptLevel::kO2), ::testing::ElementsAre(half, half, single, single, half, half));
  EXPECT_THAT(dtypes(OptLevel::kO3), ::testing::Each(half));
}

}  // namespace
}  // namespace lockstep::amp
