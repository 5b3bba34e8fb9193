// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/checkpoints.h"

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>

#include "amp/grad_scaler/opt_level.h"
#include "comm/ddp/digest.h"
#include "comm/group/world.h"
#include "model_zoo/build.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/store.h"
#include "runtime/data/description.h"
#include "runtime/data/loader.h"
#include "runtime/data/make_dataset.h"
#include "runtime/ops/ops.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/step/training_step.h"
#include "tests/runtime/optim/make_optimizer.h"

namespace lockstep::step {
namespace {

using optim::testing::MakeOptimizer;
using optim::testing::with_adam;
using optim::testing::with_sgd;
using testing::HasSubstr;
using testing::ThrowsMessage;

class CheckpointsOfALoop : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ =
      (std::filesystem::temp_directory_path() / ("lockstep-checkpoints-" + std::to_string(getpid()))).string();
};

/// A loop of one's own, with everything that has to be saved: dropout, running statistics, momentum, a loss scale.
struct Loop {
  explicit Loop(const std::string& folder, const MakeOptimizer& make = with_sgd({.lr = 0.05, .momentum = 0.9}),
                const model_zoo::ModelOptions& options = model_zoo::MlpOptions{.hidden = {12},
                                                                               .dropout = 0.2,
                                                                               .batch_norm = true},
                data::DatasetPtr samples = data::make_dataset(
                    {.train = data::SyntheticOptions{.samples = 40, .shape = {8}, .classes = 3}}, data::Split::kTrain))
      : dataset(std::move(samples)) {
    const data::Description data = data::describe(*dataset);
    model = model_zoo::build(options, {data.sample_shape, data.classes, data.vocabulary, data.target_shape}, 1);
    optimizer = make.of(model->parameters());
    amp::initialize(*model, *optimizer, {.opt_level = amp::OptLevel::kO1, .dtype = DType::kFloat16});
    ddp.emplace(*model, world);
    // Overflows at first, and grows often enough to do so again.
    scaler.emplace(world, amp::GradScalerOptions{.init = 16777216, .growth_interval = 2});
    step.emplace(*ddp, *optimizer, *scaler, ops::cross_entropy);
    checkpoints.emplace(folder, *ddp, *optimizer, *scaler);
  }
  /// Goes on from the newest checkpoint to step `last`, and saves it.
  void train(std::uint64_t last) {
    const Progress start = checkpoints->resume();
    data::Loader loader(dataset, {.global_batch = 16, .start = start.sampler, .first_step = start.step + 1});
    for (std::uint64_t i = start.step; i < last; ++i) step->run(loader.next());
    checkpoints->save({last, loader.state()});
  }
  std::string digest() const { return comm::weights_digest(*model->arena()); }

  comm::World world = comm::World::from_environment();
  data::DatasetPtr dataset;
  std::unique_ptr<nn::Module> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<comm::DistributedDataParallel> ddp;
  std::optional<amp::GradScaler> scaler;
  std::optional<TrainingStep> step;
  std::optional<Checkpoints> checkpoints;
};

TEST_F(CheckpointsOfALoop, LeadToTheBitsOfOneThatWasNotInterrupted) {
  Loop whole(folder_ + "/whole");
  whole.train(14);
  EXPECT_GT(whole.scaler->state_dict().skipped_steps, 0u);
  for (const std::uint64_t stop : {1, 2, 5, 13}) {
    SCOPED_TRACE(stop);
    const std::string folder = folder_ + "/" + std::to_string(stop);
    Loop(folder).train(stop);
    Loop resumed(folder);
    resumed.train(14);
    EXPECT_EQ(resumed.digest(), whole.digest());
    EXPECT_EQ(resumed.scaler->state_dict(), whole.scaler->state_dict());
    EXPECT_EQ(resumed.optimizer->applied_steps(), whole.optimizer->applied_steps());
    for (std::size_t i = 0; i < whole.model->arena()->statistics().size(); ++i) {
      const auto mine = resumed.model->arena()->statistics()[i].second->committed().as<float>();
      const auto truth = whole.model->arena()->statistics()[i].second->committed().as<float>();
      EXPECT_TRUE(std::equal(mine.begin(), mine.end(), truth.begin()));
    }
  }
}

/// Counting modulo 7 from anywhere: the token behind each is its label.
class Counting final : public data::Dataset {
 public:
  std::int64_t size() const override { return 40; }
  Shape sample_shape() const override { return {5}; }
  std::int64_t vocabulary() const override { return 7; }
  std::int64_t classes() const override { return 7; }
  Shape target_shape() const override { return {5}; }
  void get(const data::SampleKey& key, const data::Sample& sample) const override {
    for (std::int64_t t = 0; t < 5; ++t) {
      sample.tokens[static_cast<std::size_t>(t)] = (key.index + t) % 7;
      sample.labels[static_cast<std::size_t>(t)] = (key.index + t + 1) % 7;
    }
  }
};

TEST_F(CheckpointsOfALoop, OfALanguageModelSaveATiedWeightOnceAndLeadToTheSameBits) {
  const model_zoo::GptOptions gpt{
      .layers = 2, .heads = 2, .width = 8, .context = 8, .dropout = 0.2, .checkpoint_activations = true};
  const auto loop = [&](const std::string& name) {
    auto made =
        std::make_unique<Loop>(folder_ + "/" + name, with_adam({.lr = 0.01}), gpt, std::make_shared<Counting>());
    return made;
  };
  const auto whole = loop("whole");
  whole->train(12);
  loop("stopped")->train(5);
  const auto resumed = loop("stopped");
  resumed->train(12);
  EXPECT_EQ(resumed->digest(), whole->digest());
  int tied = 0;
  for (const auto& [name, tensor] : state_tensors({{"", *whole->model->arena()}}, {})) {
    tied += name.ends_with("token_embedding.weight") ? 1 : 0;
    EXPECT_FALSE(name.ends_with("head.weight"));
  }
  EXPECT_EQ(tied, 1);
}

TEST_F(CheckpointsOfALoop, HoldAllStateOfEveryOptimizer) {
  for (const MakeOptimizer& make : optim::testing::every_optimizer()) {
    SCOPED_TRACE(make.name);
    const std::string folder = folder_ + "/" + make.name;
    Loop whole(folder + "-whole", make);
    whole.train(12);
    Loop(folder, make).train(7);
    Loop resumed(folder, make);
    resumed.train(12);
    const auto expected = state_tensors({{"", *whole.model->arena()}}, {{"", *whole.optimizer}});
    for (const auto& [name, found] : state_tensors({{"", *resumed.model->arena()}}, {{"", *resumed.optimizer}})) {
      const auto* const bytes = static_cast<const std::byte*>(found.data());
      EXPECT_TRUE(std::equal(bytes, bytes + found.bytes(), static_cast<const std::byte*>(expected.at(name).data())))
          << name;
    }
  }
}

TEST_F(CheckpointsOfALoop, BeginAtStepZeroWhereThereIsNone) {
  Loop loop(folder_);
  const std::string before = loop.digest();
  EXPECT_EQ(loop.checkpoints->resume().step, 0u);
  EXPECT_EQ(loop.digest(), before);
}

TEST_F(CheckpointsOfALoop, RefuseAnotherOptimizerAndChangeNothing) {
  Loop(folder_).train(3);
  Loop other(folder_, with_adam({.lr = 0.01}));
  const std::string before = other.digest();
  EXPECT_THAT([&] { other.checkpoints->resume(); },
              ThrowsMessage<UsageError>(HasSubstr("was saved with optimizer sgd, this loop has optimizer adam")));
  EXPECT_EQ(other.digest(), before);
}

/// Two models and a third optimizer that has parameters of both; names of parameters are the same in each model.
struct SeveralParts {
  explicit SeveralParts(const std::string& folder, bool second_scaler = true) {
    for (const std::uint64_t seed : {1, 2}) {
      models.push_back(model_zoo::build(model_zoo::MlpOptions{.hidden = {6}, .batch_norm = true}, {{4}, 3}, seed));
    }
    std::vector<nn::Parameter> weights, others;
    for (const auto& model : models) {
      for (const nn::Parameter& parameter : model->parameters()) {
        (parameter.kind == nn::ParameterKind::kWeight ? weights : others).push_back(parameter);
      }
    }
    of_weights = optim::novograd(weights, {.lr = 0.02});
    of_others = optim::sgd(others, {.lr = 0.05, .momentum = 0.9});
    amp::initialize({models[0].get(), models[1].get()}, {of_weights.get(), of_others.get()},
                    {.opt_level = amp::OptLevel::kO1, .dtype = DType::kFloat16});
    for (const auto& model : models) ddps.push_back(std::make_unique<comm::DistributedDataParallel>(*model, world));
    scaler.emplace(world, amp::GradScalerOptions{.init = 16777216, .growth_interval = 2});
    idle.emplace(world, amp::GradScalerOptions{.enabled = false});
    LoopParts parts{.models = {{"left", *ddps[0]}, {"right", *ddps[1]}},
                    .optimizers = {{"weights", *of_weights}, {"others", *of_others}},
                    .scalers = {{"main", *scaler}}};
    if (second_scaler) parts.scalers.push_back({"idle", *idle});
    checkpoints.emplace(folder, parts);
  }
  void train(std::uint64_t last) {
    const Progress start = checkpoints->resume();
    data::Loader loader(dataset, {.global_batch = 8, .start = start.sampler, .first_step = start.step + 1});
    for (std::uint64_t i = start.step; i < last; ++i) {
      const data::Batch batch = loader.next();
      of_weights->zero_grad();
      of_others->zero_grad();
      const comm::ShareOutput left = ddps[0]->forward(batch), right = ddps[1]->forward(batch);
      scaler->scale(ops::cross_entropy(left + right, batch.target, {.divisor = left.loss_divisor()})).backward();
      scaler->step(*of_weights);
      scaler->step(*of_others);
      scaler->update();
    }
    checkpoints->save({last, loader.state()});
  }
  std::string digests() const {
    return comm::weights_digest(*models[0]->arena()) + comm::weights_digest(*models[1]->arena());
  }

  comm::World world = comm::World::from_environment();
  data::DatasetPtr dataset = data::make_dataset(
      {.train = data::SyntheticOptions{.samples = 40, .shape = {4}, .classes = 3}}, data::Split::kTrain);
  std::vector<std::unique_ptr<nn::Module>> models;
  std::unique_ptr<optim::Optimizer> of_weights, of_others;
  std::vector<std::unique_ptr<comm::DistributedDataParallel>> ddps;
  std::optional<amp::GradScaler> scaler, idle;
  std::optional<Checkpoints> checkpoints;
};

TEST_F(CheckpointsOfALoop, HoldAnyNumberOfModelsOptimizersAndScalers) {
  SeveralParts whole(folder_ + "/whole");
  whole.train(14);
  EXPECT_GT(whole.scaler->state_dict().skipped_steps, 0u);
  SeveralParts(folder_).train(9);
  SeveralParts resumed(folder_);
  resumed.train(14);
  EXPECT_EQ(resumed.digests(), whole.digests());
  EXPECT_EQ(resumed.scaler->state_dict(), whole.scaler->state_dict());
  EXPECT_EQ(resumed.of_others->applied_steps(), whole.of_others->applied_steps());
  const auto tensors_of = [](const SeveralParts& loop) {
    return state_tensors({{"left", *loop.models[0]->arena()}, {"right", *loop.models[1]->arena()}},
                         {{"weights", *loop.of_weights}, {"others", *loop.of_others}});
  };
  const auto expected = tensors_of(whole);
  EXPECT_TRUE(expected.contains("model/right/output.weight"));
  EXPECT_TRUE(expected.contains("optimizer/weights/step/left/output.weight"));
  for (const auto& [name, found] : tensors_of(resumed)) {
    const auto* const bytes = static_cast<const std::byte*>(found.data());
    EXPECT_TRUE(std::equal(bytes, bytes + found.bytes(), static_cast<const std::byte*>(expected.at(name).data())))
        << name;
  }
}

TEST_F(CheckpointsOfALoop, RefuseOtherPartsAndChangeNothing) {
  SeveralParts(folder_).train(3);
  SeveralParts fewer(folder_, false);
  const std::string before = fewer.digests();
  EXPECT_THAT([&] { fewer.checkpoints->resume(); },
              ThrowsMessage<UsageError>(HasSubstr("was saved with scalers main: GradScaler, idle: GradScaler, this "
                                                  "loop has scaler main: GradScaler")));
  EXPECT_EQ(fewer.digests(), before);
  Loop one(folder_);
  EXPECT_THAT([&] { one.checkpoints->resume(); },
              ThrowsMessage<UsageError>(
                  HasSubstr("was saved with optimizers weights: novograd, others: sgd, this loop has optimizer sgd")));
}

TEST_F(CheckpointsOfALoop, NeedNamesThatTellTheirPartsApart) {
  SeveralParts loop(folder_);
  const auto refuses = [&](const LoopParts& parts, const std::string& why) {
    EXPECT_THAT([&] { Checkpoints(folder_, parts); }, ThrowsMessage<UsageError>(HasSubstr(why)));
  };
  comm::DistributedDataParallel &left = *loop.ddps[0], &right = *loop.ddps[1];
  refuses({.models = {}}, "needs a model");
  refuses({.models = {{"a", left}, {"", right}}}, "one of several models has no name");
  refuses({.models = {{"a", left}, {"a", right}}}, "two models have the name \"a\"");
  refuses({.models = {{"a/b", left}}}, "names have no '/'");
  refuses({.models = {{"", left}}, .optimizers = {{"", *loop.of_weights}}}, "a parameter of none of the models");
}

/// What the log says while `work` runs.
std::string log_of(const std::function<void()>& work) {
  std::ostringstream words;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(words)));
  work();
  spdlog::set_default_logger(before);
  return words.str();
}

/// Writes the newest checkpoint anew, changed.
void change(const std::string& folder, const std::function<void(checkpoint::TrainingState&)>& with) {
  const checkpoint::Store store(folder);
  checkpoint::Checkpoint found = *store.latest();
  std::filesystem::remove_all(found.path);
  with(found.state);
  store.save(found.state, found.tensors);
}

TEST_F(CheckpointsOfALoop, WarnOfAnotherComputingEnvironment) {
  Loop(folder_).train(3);
  EXPECT_EQ(log_of([&] { Loop(folder_).checkpoints->resume(); }), "");
  change(folder_, [](checkpoint::TrainingState& state) {
    state.mutable_environment()->set_threads(state.environment().threads() + 1);
    state.set_world_size(4);
  });
  const std::string words = log_of([&] { Loop(folder_).checkpoints->resume(); });
  EXPECT_THAT(words, HasSubstr("the bits may differ from those of an uninterrupted run: ranks 4 -> 1; threads "));
}

TEST_F(CheckpointsOfALoop, WarnOfOtherData) {
  Loop loop(folder_);
  const auto checkpoints_with = [&](std::vector<data::DataDigest> data) {
    return Checkpoints(folder_, {.models = {{"", *loop.ddp}},
                                 .optimizers = {{"", *loop.optimizer}},
                                 .scalers = {{"", *loop.scaler}},
                                 .data = std::move(data)});
  };
  const auto other = [](int classes) {
    const data::SyntheticOptions options{.samples = 40, .shape = {8}, .classes = classes};
    return std::vector{data::digest_of("train", *data::make_dataset({.train = options}, data::Split::kTrain))};
  };
  checkpoints_with(other(3)).save({.step = 1});
  EXPECT_EQ(log_of([&] { checkpoints_with(other(3)).resume(); }), "");
  EXPECT_THAT(log_of([&] { checkpoints_with(other(4)).resume(); }), HasSubstr("the data changed: train: "));
  EXPECT_EQ(log_of([&] { checkpoints_with({}).resume(); }), "") << "a loop that says nothing of its data";
}

TEST_F(CheckpointsOfALoop, RefuseAnotherOrderOfSamplesWithinAnEpoch) {
  Loop loop(folder_);
  loop.train(4);  // an epoch has 3 steps
  const Progress within = loop.checkpoints->resume();
  EXPECT_EQ(within.sampler, (data::SamplerState{.epoch = 1, .cursor = 16, .seed = 0}));
  const auto go_on = [&](const data::SamplerState& start, std::uint64_t seed) {
    return data::Loader(loop.dataset, {.global_batch = 16, .seed = seed, .start = start}).state();
  };
  EXPECT_THAT(
      [&] { go_on(within.sampler, 7); },
      ThrowsMessage<UsageError>(HasSubstr("amid an epoch whose samples are ordered by seed 0, this seed is 7")));
  EXPECT_EQ(go_on(within.sampler, 0), within.sampler);
  EXPECT_EQ(go_on({.epoch = 1, .cursor = 0, .seed = 0}, 7), (data::SamplerState{.epoch = 1, .cursor = 0, .seed = 7}));
}

TEST_F(CheckpointsOfALoop, RefuseOneWithoutTheLossScale) {
  Loop(folder_).train(3);
  change(folder_, [](checkpoint::TrainingState& state) { state.clear_scaler(); });
  Loop loop(folder_);
  const std::string before = loop.digest();
  EXPECT_THAT([&] { loop.checkpoints->resume(); },
              ThrowsMessage<UsageError>(HasSubstr("was saved with no scaler, this loop has scaler GradScaler")));
  EXPECT_EQ(loop.digest(), before);
}

TEST_F(CheckpointsOfALoop, RefuseTheStateOfADisabledScaler) {
  Loop(folder_).train(3);
  change(folder_, [](checkpoint::TrainingState& state) { state.mutable_scaler(0)->set_enabled(false); });
  Loop loop(folder_);
  const std::string before = loop.digest();
  EXPECT_THAT([&] { loop.checkpoints->resume(); },
              ThrowsMessage<UsageError>(HasSubstr("was saved with a disabled GradScaler, this one is enabled")));
  EXPECT_EQ(loop.digest(), before);
}

TEST_F(CheckpointsOfALoop, WarnOnceOfOldOnesThatCannotBeDeleted) {
  Loop loop(folder_);
  loop.checkpoints->save({.step = 1}, 1);
  // What is no checkpoint's is not deleted.
  std::filesystem::create_directory(checkpoint::Store(folder_).latest()->path + "/notes");
  const std::string words = log_of([&] {
    loop.checkpoints->save({.step = 2}, 1);
    loop.checkpoints->save({.step = 3}, 1);
  });
  EXPECT_EQ(words.find("old checkpoints stay"), words.rfind("old checkpoints stay"));
  EXPECT_THAT(words, HasSubstr("old checkpoints stay"));
  EXPECT_EQ(checkpoint::Store(folder_).latest()->state.step(), 3u);
}

TEST_F(CheckpointsOfALoop, KeepTheNewest) {
  Loop loop(folder_);
  for (std::uint64_t step = 1; step <= 4; ++step) loop.checkpoints->save({.step = step}, 2);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2);
}

}  // namespace
}  // namespace lockstep::step
