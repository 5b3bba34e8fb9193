// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/training_step.h"

#include <gmock/gmock.h>

#include <memory>

#include "amp/grad_scaler/opt_level.h"
#include "comm/ddp/digest.h"
#include "comm/group/world.h"
#include "model_zoo/build.h"
#include "runtime/autograd/engine.h"
#include "runtime/base/error.h"
#include "runtime/ops/operators.h"
#include "runtime/ops/ops.h"
#include "runtime/optim/sgd.h"
#include "tests/support/devices.h"

namespace lockstep::step {
namespace {

using devices::device;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// A small model in training on the device under test, on one rank.
struct Model {
  explicit Model(const amp::AmpOptions& amp = {}, const amp::GradScalerOptions& scaling = {.dynamic = false, .init = 1},
                 const model_zoo::ModelOptions& options = model_zoo::MlpOptions{.hidden = {4}, .batch_norm = true},
                 const model_zoo::ModelInput& input = {.sample_shape = {5}, .outputs = 3})
      : world(comm::World::from_environment({.device = device()})),
        net(model_zoo::build(options, input, 3)),
        optimizer(optim::sgd(net->parameters(), {.lr = 0.1})) {
    amp::initialize(*net, *optimizer, amp, device());
    ddp.emplace(*net, world);
    scaler.emplace(world, scaling);
  }

  comm::World world;
  std::unique_ptr<nn::Module> net;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<comm::DistributedDataParallel> ddp;
  std::optional<amp::GradScaler> scaler;
};

data::Batch batch(std::uint64_t step, std::int64_t samples = 6) {
  std::vector<float> input(static_cast<std::size_t>(samples * 5));
  std::vector<std::int64_t> target(static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>((i * 7 + step) % 11) - 5.0f;
  for (std::size_t i = 0; i < target.size(); ++i) target[i] = static_cast<std::int64_t>(i % 3);
  return {.input = Tensor::from(input, {samples, 5}),
          .target = Tensor::from(target, {samples}),
          .step = step,
          .step_samples = samples};
}

TEST(TrainingStep, LearnsFromOneBatch) {
  Model model;
  TrainingStep step(*model.ddp, *model.optimizer, *model.scaler, ops::cross_entropy);
  step.run(batch(1));
  const float first = step.outcome().loss;
  for (int i = 0; i < 30; ++i) step.run(batch(1));
  EXPECT_LT(step.outcome().loss, 0.7f * first);
}

/// Writes down all that it is told.
class Recorder : public StepObserver {
 public:
  explicit Recorder(bool acts = false) : acts_(acts) {}

  void step_begins(std::uint64_t step) override { told.push_back("begin " + std::to_string(step)); }
  bool needs_phases(std::uint64_t) const override { return acts_; }
  void phase_begins(Phase phase, std::uint64_t, std::uint32_t micro_batch) override {
    const char* const names[] = {"forward ", "backward ", "update "};
    told.push_back(names[static_cast<int>(phase)] + std::to_string(micro_batch));
  }
  void gradient_ready(std::size_t slot) override { told.push_back("gradient " + std::to_string(slot)); }
  void step_ends(std::uint64_t step) override { told.push_back("end " + std::to_string(step)); }

  std::vector<std::string> told;

 private:
  bool acts_;
};

TEST(TrainingStep, TellsItsObserversWhatItDoes) {
  Model model;
  Recorder recorder;
  TrainingStep step(*model.ddp, *model.optimizer, *model.scaler, ops::cross_entropy, {.observers = {&recorder}});
  const std::size_t slots = model.net->arena()->slots().size();
  step.run(std::vector{batch(4), batch(4)});
  std::vector<std::string> expected{"begin 4"};
  for (const char* m : {"0", "1"}) {
    expected.insert(expected.end(), {std::string("forward ") + m, std::string("backward ") + m});
    for (std::size_t slot = 0; slot < slots; ++slot) expected.push_back("gradient " + std::to_string(slot));
  }
  expected.insert(expected.end(), {"update 1", "end 4"});
  EXPECT_EQ(recorder.told.size(), expected.size());
  EXPECT_THAT(recorder.told, testing::UnorderedElementsAreArray(expected));
  EXPECT_EQ(recorder.told.front(), "begin 4");
  EXPECT_EQ(recorder.told[1], "forward 0");
  EXPECT_EQ(recorder.told[2], "backward 0");
  EXPECT_EQ(recorder.told.back(), "end 4");
}

TEST(TrainingStep, ABatchThatDoesNotNameItsStepIsOfTheNextOne) {
  Model model;
  Recorder recorder;
  TrainingStep step(*model.ddp, *model.optimizer, *model.scaler, ops::cross_entropy, {.observers = {&recorder}});
  step.run(batch(0));
  step.run(batch(7));
  step.run(batch(0));
  std::vector<std::string> begins;
  for (const std::string& line : recorder.told) {
    if (line.starts_with("begin")) begins.push_back(line);
  }
  EXPECT_THAT(begins, ElementsAre("begin 1", "begin 7", "begin 8"));
}

TEST(TrainingStep, IsAGraphOnAGpuUnlessAnObserverActsWithinIt) {
  for (const bool acts : {false, true}) {
    for (const Graph graph : {Graph::kAuto, Graph::kOff}) {
      Model model;
      Recorder recorder(acts);
      TrainingStep step(*model.ddp, *model.optimizer, *model.scaler, ops::cross_entropy,
                        {.graph = graph, .observers = {&recorder}});
      for (std::uint64_t number = 1; number <= 5; ++number) step.run(batch(number));
      const bool launches = device() != kCpu && !acts && graph == Graph::kAuto;
      EXPECT_EQ(step.graph_launches(), launches ? 4u : 0u);
      EXPECT_EQ(step.outcome().schedule.applied_steps, 5);
    }
  }
}

/// configs/recipe_mlp.pbtxt with smaller layers: what its step costs in launches.
TEST(TrainingStep, LeavesAGradientToItsHoldersAsAGraphToo) {
  Model model;
  TrainingStep step(*model.ddp, *model.optimizer, *model.scaler, ops::cross_entropy);
  const Tensor weight = model.net->parameters().front().tensor;
  const auto values_of = [](const Tensor& tensor) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < tensor.numel(); ++i) values.push_back(tensor.item(i));
    return values;
  };
  for (std::uint64_t i = 1; i <= 4; ++i) {
    step.run(batch(i));
    const Tensor held = weight.grad();
    const std::vector<double> before = values_of(held);
    step.run(batch(10 * i));
    EXPECT_EQ(values_of(held), before) << i;
    EXPECT_NE(values_of(weight.grad()), before) << i;
  }
  EXPECT_EQ(step.graph_launches() > 0, device() != kCpu);
}

/// Cross entropy plus the sum of its squared gradients by every parameter.
Loss with_gradient_penalty(const nn::Module& net) {
  std::vector<Tensor> parameters;
  for (const nn::Parameter& parameter : net.parameters()) parameters.push_back(parameter.tensor);
  return [parameters](const Tensor& output, const Tensor& target, const ops::LossOptions& options) {
    Tensor loss = ops::cross_entropy(output, target, options);
    for (const Tensor& gradient : autograd::grad(loss, parameters, {}, {.create_graph = true})) {
      loss = loss + ops::sum(gradient * gradient);
    }
    return loss;
  };
}

TEST(TrainingStep, WithAGradientPenaltyIsAGraphOfTheSameBits) {
  for (const amp::AmpOptions& amp : {amp::AmpOptions{}, amp::AmpOptions{.opt_level = amp::OptLevel::kO1}}) {
    std::vector<Tensor> weights;
    for (const Graph graph : {Graph::kAuto, Graph::kOff}) {
      Model model(amp);
      TrainingStep step(*model.ddp, *model.optimizer, *model.scaler, with_gradient_penalty(*model.net),
                        {.graph = graph});
      for (std::uint64_t number = 1; number <= 5; ++number) step.run(batch(number));
      EXPECT_EQ(step.graph_launches(), device() != kCpu && graph == Graph::kAuto ? 4u : 0u);
      EXPECT_FALSE(step.outcome().skipped());
      weights.push_back(model.net->arena()->masters().to(kCpu));
    }
    EXPECT_THAT(weights[0].as<float>(), testing::ElementsAreArray(weights[1].as<float>()));
  }
}

TEST(TrainingStep, WithAComposedLossIsAGraphOfTheSameBits) {
  const auto nll = [](const Tensor& output, const Tensor& target, const ops::LossOptions& options) {
    ops::NllOptions same;
    same.divisor = options.divisor;
    return ops::nll(ops::log_softmax(output), target, same);
  };
  std::vector<Tensor> weights;
  for (const Graph graph : {Graph::kAuto, Graph::kOff}) {
    Model model;
    TrainingStep step(*model.ddp, *model.optimizer, *model.scaler, nll, {.graph = graph});
    for (std::uint64_t number = 1; number <= 4; ++number) step.run(batch(number));
    EXPECT_EQ(step.graph_launches(), device() != kCpu && graph == Graph::kAuto ? 3u : 0u);
    weights.push_back(model.net->arena()->masters().to(kCpu));
  }
  EXPECT_THAT(weights[0].as<float>(), testing::ElementsAreArray(weights[1].as<float>()));
}

/// Each change comes behind step 3 of 7, when the step is a graph where it can be.
TEST(TrainingStep, WhatChangesBetweenStepsIsCapturedAnew) {
  struct Change {
    std::string what;
    std::function<void(Model&)> make;
  };
  const Change changes[]{
      {"nothing", [](Model&) {}},
      {"rates, as many", [](Model& model) { model.optimizer->set_learning_rate(0.01); }},
      {"more rates",
       [](Model& model) {
         model.optimizer->set_learning_rates({0.1f, 0.2f, 0.3f, 0.04f, 0.5f, 0.06f});
       }},
      {"a frozen parameter",
       [](Model& model) {
         Tensor weight = model.net->parameters().front().tensor;
         weight.set_requires_grad(false);
       }},
      {"a module in evaluation",
       [](Model& model) {
         model.net->for_each([](const std::string& path, nn::Module& module) {
           if (path.find("norm") != std::string::npos) module.train(false);
         });
       }},
  };
  std::vector<std::string> digests;
  for (const auto& [what, make] : changes) {
    SCOPED_TRACE(what);
    for (const Graph graph : {Graph::kAuto, Graph::kOff}) {
      Model model;
      TrainingStep step(*model.ddp, *model.optimizer, *model.scaler, ops::cross_entropy, {.graph = graph});
      for (std::uint64_t number = 1; number <= 7; ++number) {
        step.run(batch(number));
        if (number == 3) make(model);
      }
      // A change is seen once, runs as it is, and is a graph from the step after.
      const bool moves = what != "nothing" && what != "rates, as many";
      EXPECT_EQ(step.graph_launches(), device() != kCpu && graph == Graph::kAuto ? (moves ? 5u : 6u) : 0u);
      digests.push_back(comm::weights_digest(*model.net->arena()));
    }
    EXPECT_EQ(digests[digests.size() - 2], digests.back());
  }
  for (std::size_t i = 2; i < digests.size(); i += 2) EXPECT_NE(digests[i], digests[0]) << changes[i / 2].what;
}

TEST(TrainingStep, OfALanguageModelIsAGraphOfTheSameBits) {
  constexpr std::int64_t kWords = 7, kLength = 4, kSamples = 3;
  const model_zoo::ModelInput texts{
      .sample_shape = {kLength}, .outputs = kWords, .vocabulary = kWords, .target_shape = {kLength}};
  const auto text_batch = [&](std::uint64_t step) {
    std::vector<std::int64_t> tokens, labels;
    for (std::int64_t i = 0; i < kSamples * kLength; ++i) {
      tokens.push_back((i * i + static_cast<std::int64_t>(step)) % kWords);
      labels.push_back((i * 3) % kWords);
    }
    return data::Batch{.input = Tensor::from(tokens, {kSamples, kLength}),
                       .target = Tensor::from(labels, {kSamples, kLength}),
                       .step = step,
                       .step_samples = kSamples};
  };
  const model_zoo::GptOptions gpt{
      .layers = 2, .heads = 2, .width = 8, .context = 8, .dropout = 0.3, .checkpoint_activations = true};
  const model_zoo::LlamaOptions llama{.layers = 2, .heads = 2, .kv_heads = 1, .width = 8, .hidden = 6, .context = 8};
  for (const model_zoo::ModelOptions& options : {model_zoo::ModelOptions(gpt), model_zoo::ModelOptions(llama)}) {
    std::vector<std::string> digests;
    std::vector<float> losses;
    for (const Graph graph : {Graph::kAuto, Graph::kOff}) {
      Model model({.opt_level = amp::OptLevel::kO1, .dtype = DType::kBFloat16}, {.dynamic = false, .init = 1}, options,
                  texts);
      TrainingStep step(*model.ddp, *model.optimizer, *model.scaler, ops::cross_entropy, {.graph = graph});
      for (std::uint64_t i = 1; i <= 5; ++i) {
        step.run(text_batch(i));
        losses.push_back(step.outcome().loss);
      }
      EXPECT_EQ(step.graph_launches(), device() != kCpu && graph == Graph::kAuto ? 4u : 0u);
      digests.push_back(comm::weights_digest(*model.net->arena()));
    }
    EXPECT_EQ(digests[0], digests[1]);
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(losses[i], losses[i + 5]);
  }
}

TEST(TrainingStep, RefusesALossThatIgnoresItsDivisor) {
  const auto mean = [](const Tensor& output, const Tensor& target, const ops::LossOptions&) {
    return ops::cross_entropy(output, target);
  };
  // As many samples as the divisor counts: the mean is right.
  Model whole, parts;
  TrainingStep one(*whole.ddp, *whole.optimizer, *whole.scaler, mean);
  EXPECT_NO_THROW(one.run(batch(1)));
  data::Batch half = batch(1);
  half.step_samples = 12;
  TrainingStep two(*parts.ddp, *parts.optimizer, *parts.scaler, mean);
  EXPECT_THAT(
      [&] {
        two.run(std::vector{half, half});
      },
      ThrowsMessage<UsageError>(HasSubstr("the loss of a training step ignores options.divisor")));
  Model sound;
  TrainingStep right(*sound.ddp, *sound.optimizer, *sound.scaler, ops::cross_entropy);
  EXPECT_NO_THROW(right.run(std::vector{half, half}));
}

TEST(TrainingStep, RefusesWhatCannotTrain) {
  Model model, other;
  EXPECT_THAT([&] { TrainingStep(*model.ddp, *other.optimizer, *model.scaler, ops::cross_entropy); },
              ThrowsMessage<UsageError>(HasSubstr("updates another model")));
  TrainingStep step(*model.ddp, *model.optimizer, *model.scaler, ops::cross_entropy);
  EXPECT_THAT([&] { step.run(std::vector<data::Batch>()); }, ThrowsMessage<UsageError>(HasSubstr("without a batch")));
  data::Batch unweighted = batch(1);
  unweighted.step_samples = 0;
  EXPECT_THAT([&] { step.run(unweighted); },
              ThrowsMessage<UsageError>(HasSubstr("does not say how many samples its step has")));
  if (device() != kCpu) GTEST_SKIP() << "a GPU takes the graph that a CPU refuses below";
  EXPECT_THAT(
      [&] { TrainingStep(*model.ddp, *model.optimizer, *model.scaler, ops::cross_entropy, {.graph = Graph::kOn}); },
      ThrowsMessage<UsageError>(HasSubstr("cannot be a CUDA graph")));
}

TEST(TrainingStep, GivesUpWhereItsOutcomeIsReadAfterTooManySkips) {
  Model model({.opt_level = amp::OptLevel::kO1, .dtype = DType::kFloat16}, {.max_consecutive_skips = 2});
  TrainingStep step(*model.ddp, *model.optimizer, *model.scaler, ops::cross_entropy);
  data::Batch bad = batch(1);
  bad.input.mutable_as<float>()[0] = std::numeric_limits<float>::infinity();
  step.run(bad);
  EXPECT_TRUE(step.outcome().skipped());
  step.run(bad);
  EXPECT_THAT([&] { step.outcome(); },
              ThrowsMessage<NumericsError>(testing::AllOf(HasSubstr("2 steps in a row"), HasSubstr("output."))));
}

/// Who gives the verdict commits the statistics, nobody else.
TEST(TrainingStep, StatisticsFollowTheVerdict) {
  Model model;
  const auto backward = [&](bool finite) {
    data::Batch share = batch(1);
    if (!finite) share.input.mutable_as<float>()[0] = std::numeric_limits<float>::infinity();
    const Tensor output = model.ddp->forward(share.input.to(device()));
    model.optimizer->zero_grad();
    model.scaler->scale(ops::cross_entropy(output, share.target.to(device()))).backward();
  };
  const auto bits = [&] {
    const Tensor committed = model.net->arena()->statistics().front().second->committed().to(kCpu);
    return std::vector<float>(committed.as<float>().begin(), committed.as<float>().end());
  };
  std::vector<float> before = bits();
  backward(true);
  model.optimizer->step(1.0f, 0.0f);
  EXPECT_EQ(bits(), before) << "an update alone";
  model.net->commit_statistics();
  EXPECT_NE(bits(), before);
  before = bits();
  backward(false);
  model.scaler->step(*model.optimizer);
  model.scaler->adapt();
  EXPECT_EQ(bits(), before) << "a skip";
  backward(true);
  EXPECT_EQ(bits(), before) << "the skipped pass left nothing";
  model.scaler->step(*model.optimizer);
  model.scaler->adapt();
  EXPECT_NE(bits(), before) << "the scaler's step";
  before = bits();
  backward(true);
  model.optimizer->step();
  EXPECT_NE(bits(), before) << "the optimizer's step without a scaler";
}

}  // namespace
}  // namespace lockstep::step
