// SPDX-License-Identifier: Apache-2.0
#include "amp/grad_scaler/opt_level.h"

#include <gmock/gmock.h>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/engine.h"
#include "runtime/tensor/error.h"
#include "tests/amp/grad_scaler/scaled_model.h"

namespace lockstep::amp {
namespace {

using amp::testing::device;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Unresolved: what properties_of makes of the text alone.
job::Amp amp_of(const std::string& text) {
  job::Amp config;
  if (!google::protobuf::TextFormat::ParseFromString(text, &config)) throw std::invalid_argument(text);
  return config;
}

struct Level {
  const char* text;
  OptLevelProperties expected;
};

TEST(OptLevel, StandsForApexsTable) {
  const Level levels[] = {
      {"", {}},
      {"opt_level: O0", {DType::kFloat32, false, false, true, true}},
      {"opt_level: O1", {DType::kFloat16, true, false, true, true}},
      {"opt_level: O2", {DType::kFloat16, false, true, true, true}},
      {"opt_level: O3", {DType::kFloat16, false, true, false, false}},
      {"opt_level: O1 dtype: BF16", {DType::kBFloat16, true, false, true, true}},
      {"opt_level: O2 keep_batch_norm_fp32: false", {DType::kFloat16, false, true, false, true}},
      {"opt_level: O2 master_weights: false", {DType::kFloat16, false, true, true, false}},
      {"opt_level: O3 keep_batch_norm_fp32: true", {DType::kFloat16, false, true, true, false}},
      {"opt_level: O3 master_weights: true dtype: BF16", {DType::kBFloat16, false, true, false, true}},
  };
  for (const auto& [text, expected] : levels) {
    SCOPED_TRACE(text);
    for (const job::Amp& config : {amp_of(text), job::resolved("amp { " + std::string(text) + " }").amp()}) {
      const OptLevelProperties found = properties_of(config);
      EXPECT_EQ(found.compute_dtype, expected.compute_dtype);
      EXPECT_EQ(found.autocast, expected.autocast);
      EXPECT_EQ(found.reduced_parameters, expected.reduced_parameters);
      EXPECT_EQ(found.keep_batch_norm_fp32, expected.keep_batch_norm_fp32);
      EXPECT_EQ(found.master_weights, expected.master_weights);
    }
  }
}

TEST(OptLevel, ThatContradictsItsDtypeIsAnError) {
  for (const char* text : {"opt_level: O0 dtype: FP16", "opt_level: O0 dtype: BF16", "dtype: FP16",
                           "opt_level: O1 dtype: FP32", "opt_level: O2 dtype: FP32", "opt_level: O3 dtype: FP32"}) {
    try {
      properties_of(amp_of(text));
      ADD_FAILURE() << text;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("with dtype")) << text;
      EXPECT_THAT(error.advice(), HasSubstr("O0 computes in FP32"));
    }
  }
}

TEST(OptLevel, WithFloat32WeightsHasMasterWeights) {
  for (const char* text : {"opt_level: O0 master_weights: false", "opt_level: O1 master_weights: false"}) {
    EXPECT_THAT([&] { properties_of(amp_of(text)); },
                ThrowsMessage<UsageError>(HasSubstr("master_weights cannot be false")));
  }
}

TEST(OptLevel, WithFloat32WeightsKeepsBatchNormInFloat32) {
  for (const char* text : {"opt_level: O0 keep_batch_norm_fp32: false", "opt_level: O1 keep_batch_norm_fp32: false"}) {
    EXPECT_THAT([&] { properties_of(amp_of(text)); },
                ThrowsMessage<UsageError>(HasSubstr("keep_batch_norm_fp32 cannot be false under")));
  }
  EXPECT_FALSE(properties_of(amp_of("opt_level: O2 keep_batch_norm_fp32: false")).keep_batch_norm_fp32);
}

/// A classifier with everything that levels treat differently.
struct Classifier {
  explicit Classifier(const std::string& amp) : config(job::resolved("amp { " + amp + " }").amp()) {
    net.add<nn::Linear>("hidden", 6, 16);
    net.add<nn::BatchNorm>("norm", 16, true);
    net.add<nn::Dropout>("dropout", 0.1);
    net.add<nn::Linear>("output", 16, 3);
    nn::initialize(net, 5);
    const job::Job optimizer_job = job::resolved("optimizer { sgd { lr: 0.2 momentum: 0.9 } }");
    optimizer = optim::make(optimizer_job.optimizer(), net.parameters());
    initialize(net, *optimizer, config, device());
  }

  Tensor loss() { return ops::cross_entropy(forward(net, x, properties_of(config)), classes); }

  job::Amp config;
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

class EveryLevel : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryLevel, TrainsAndItsLossFalls) {
  Classifier model(GetParam());
  GradScaler scaler(model.config.loss_scale(), comm::make_self_communicator(device()));
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
  for (const char* level : {"opt_level: O3 keep_batch_norm_fp32: true", "opt_level: O2 master_weights: false"}) {
    Classifier model(level);
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
      EXPECT_EQ(rounded == slot.end - slot.begin, !norm) << level << ": " << slot.parameter.name;
    }
  }
}

TEST_P(EveryLevel, NoticesAWeightThatIsWrittenBeforeTheBackwardPassThatNeedsIt) {
  Classifier model(GetParam());
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
  Classifier model(GetParam());
  const Tensor weight = model.net.parameters()[4].tensor;
  const nn::Arena& arena = *model.net.arena();
  const auto output = [&model] {
    model.net.train(false);
    const std::vector<double> y = amp::testing::values_of(forward(model.net, model.x, properties_of(model.config)));
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

TEST_P(EveryLevel, LetsGradientsAddUpAndOptimizersTakeTurns) {
  Classifier model(GetParam()), other(GetParam());
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
  Classifier model(GetParam());
  model.net.train(false);
  const Tensor y = forward(model.net, model.x, properties_of(model.config));
  for (const double value : amp::testing::values_of(y)) EXPECT_TRUE(std::isfinite(value));
  EXPECT_EQ(model.loss().dtype(), DType::kFloat32);
  EXPECT_FALSE(Autocast::enabled());
}

INSTANTIATE_TEST_SUITE_P(Levels, EveryLevel,
                         ::testing::Values("opt_level: O0", "opt_level: O1", "opt_level: O2", "opt_level: O3",
                                           "opt_level: O1 dtype: BF16", "opt_level: O2 dtype: BF16",
                                           "opt_level: O3 dtype: BF16", "opt_level: O2 keep_batch_norm_fp32: false",
                                           "opt_level: O3 master_weights: true"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
                           return name;
                         });

TEST(Initialize, IsForAModelOnce) {
  Classifier model("opt_level: O1");
  EXPECT_THAT([&] { initialize(model.net, *model.optimizer, model.config); },
              ThrowsMessage<UsageError>(HasSubstr("was called on this model before")));
}

TEST(Initialize, MakesTheWeightsWhatTheLevelSays) {
  const auto dtypes = [](const char* amp) {
    Classifier model(amp);
    std::vector<DType> all;
    for (const nn::Parameter& parameter : model.net.parameters()) all.push_back(parameter.tensor.dtype());
    return all;
  };
  const DType single = DType::kFloat32, half = DType::kFloat16;
  EXPECT_THAT(dtypes("opt_level: O0"), ::testing::Each(single));
  EXPECT_THAT(dtypes("opt_level: O1"), ::testing::Each(single));
  EXPECT_THAT(dtypes("opt_level: O2"), ::testing::ElementsAre(half, half, single, single, half, half));
  EXPECT_THAT(dtypes("opt_level: O3"), ::testing::Each(half));
}

}  // namespace
}  // namespace lockstep::amp
