// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/checkpoints.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "amp/grad_scaler/opt_level.h"
#include "comm/ddp/digest.h"
#include "comm/group/world.h"
#include "model_zoo/build.h"
#include "runtime/data/loader.h"
#include "runtime/data/make_dataset.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/step/training_step.h"
#include "runtime/tensor/error.h"
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
  explicit Loop(const std::string& folder, const MakeOptimizer& make = with_sgd({.lr = 0.05, .momentum = 0.9})) {
    const data::SyntheticOptions samples{.samples = 40, .shape = {8}, .classes = 3};
    dataset = data::make_dataset({.train = samples}, data::Split::kTrain);
    model = model_zoo::build(model_zoo::MlpOptions{.hidden = {12}, .dropout = 0.2, .batch_norm = true}, {{8}, 3}, 1);
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

TEST_F(CheckpointsOfALoop, HoldAllStateOfEveryOptimizer) {
  for (const MakeOptimizer& make : optim::testing::every_optimizer()) {
    SCOPED_TRACE(make.name);
    const std::string folder = folder_ + "/" + make.name;
    Loop whole(folder + "-whole", make);
    whole.train(12);
    Loop(folder, make).train(7);
    Loop resumed(folder, make);
    resumed.train(12);
    const auto expected = state_tensors(*whole.model->arena(), *whole.optimizer);
    for (const auto& [name, found] : state_tensors(*resumed.model->arena(), *resumed.optimizer)) {
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
              ThrowsMessage<UsageError>(HasSubstr("was saved with optimizer sgd, this one is adam")));
  EXPECT_EQ(other.digest(), before);
}

TEST_F(CheckpointsOfALoop, KeepTheNewest) {
  Loop loop(folder_);
  for (std::uint64_t step = 1; step <= 4; ++step) loop.checkpoints->save({.step = step}, 2);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2);
}

}  // namespace
}  // namespace lockstep::step
