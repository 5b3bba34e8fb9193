// SPDX-License-Identifier: Apache-2.0
// The trainer, a loop around a TrainingStep and one of its pieces train a job to the same bits. Run as 1 to 3 ranks.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "amp/grad_scaler/opt_level.h"
#include "comm/ddp/digest.h"
#include "model_zoo/build.h"
#include "runtime/checkpoint/store.h"
#include "runtime/data/loader.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"
#include "runtime/job/job.h"
#include "runtime/job/model_options.h"
#include "runtime/job/training_options.h"
#include "runtime/step/training_step.h"
#include "runtime/train/train.h"

namespace lockstep::train {
namespace {

/// A job's model, ready to train, and its batches.
struct Loop {
  Loop(const job::Job& config, comm::World& world, DType input_dtype)
      : job(config),
        dataset(data::make_dataset(job::data_options(job.data()), data::Split::kTrain)),
        model(model_zoo::build(job::model_options(job.model()), {dataset->sample_shape(), dataset->classes()},
                               job.seed())),
        optimizer(job::make_optimizer(job.optimizer(), model->parameters())) {
    amp::initialize(*model, *optimizer, job::amp_options(job.amp()));
    ddp.emplace(*model, world, job::ddp_options(job.comm()));
    scaler.emplace(world, job::grad_scaler_options(job.amp().loss_scale()));
    data::LoaderOptions options = job::loader_options(job);
    options.rank = world.rank();
    options.world_size = world.size();
    options.input_dtype = input_dtype;
    loader.emplace(dataset, options);
  }

  std::vector<data::Batch> next_step() {
    std::vector<data::Batch> batches;
    for (std::uint32_t m = 0; m < job.train().accumulate(); ++m) batches.push_back(loader->next());
    return batches;
  }
  std::string digest() const { return comm::weights_digest(*model->arena()); }

  const job::Job& job;
  data::DatasetPtr dataset;
  std::unique_ptr<nn::Module> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<comm::DistributedDataParallel> ddp;
  std::optional<amp::GradScaler> scaler;
  std::optional<data::Loader> loader;
};

class SameLoop : public testing::TestWithParam<const char*> {
 protected:
  job::Job job() const {
    const std::vector<std::string> settings{"train.steps=8", "train.eval_every=0", "checkpoint.every_steps=0",
                                            "schedule={ constant {} }", GetParam()};
    return job::load(LOCKSTEP_SOURCE_DIR "/configs/digits_convnet.pbtxt", settings);
  }

  comm::World world_ = comm::World::from_environment();
};

/// The digest that the trainer saves.
std::string digest_of_trainer(comm::World& world, const job::Job& job) {
  const std::string name = "lockstep-same-loop-" + std::to_string(getpid());
  const std::filesystem::path folder =
      world.communicator()->broadcast_text((std::filesystem::temp_directory_path() / name).string(), 0);
  TrainOptions options;
  options.job = job;
  options.run_dir = folder;
  options.output.quiet = true;
  EXPECT_EQ(train(world, options), ExitCode::kDone);
  std::string digest;
  if (world.rank() == 0) {
    digest = checkpoint::Store((folder / "checkpoints").string()).latest()->state.weights_digest(0);
    std::filesystem::remove_all(folder);
  }
  return world.communicator()->broadcast_text(digest, 0);
}

TEST_P(SameLoop, GivesTheTrainersBits) {
  const job::Job job = this->job();
  const std::uint64_t steps = job.train().steps();
  const std::string expected = digest_of_trainer(world_, job);

  Loop short_loop(job, world_, job::loader_options(job).input_dtype);
  step::TrainingStep step(*short_loop.ddp, *short_loop.optimizer, *short_loop.scaler, ops::cross_entropy);
  for (std::uint64_t i = 0; i < steps; ++i) step.run(short_loop.next_step());
  EXPECT_EQ(short_loop.digest(), expected) << "a loop around a TrainingStep";

  // Where the trainer's batches hold inputs in 16 bits, these leave the cast to the model.
  Loop long_loop(job, world_, DType::kFloat32);
  for (std::uint64_t i = 0; i < steps; ++i) {
    long_loop.optimizer->zero_grad();
    const std::vector<data::Batch> batches = long_loop.next_step();
    for (std::size_t m = 0; m < batches.size(); ++m) {
      const auto no_sync = long_loop.ddp->no_sync(m + 1 < batches.size());
      const data::Batch& batch = batches[m];
      const comm::ShareOutput output = long_loop.ddp->forward(batch);
      const Tensor loss = ops::cross_entropy(output, batch.target, {.divisor = output.loss_divisor()});
      long_loop.scaler->scale(loss).backward();
    }
    long_loop.scaler->step(*long_loop.optimizer);
    long_loop.scaler->update();
  }
  EXPECT_EQ(long_loop.digest(), expected) << "a loop of its pieces";
}

INSTANTIATE_TEST_SUITE_P(Jobs, SameLoop,
                         testing::Values("amp={ opt_level: O0 dtype: FP32 }", "amp={ opt_level: O1 dtype: FP16 }",
                                         "amp={ opt_level: O2 dtype: BF16 }", "amp={ opt_level: O3 dtype: FP16 }",
                                         "train.accumulate=3"),
                         [](const auto& at) {
                           std::string name = at.param;
                           std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
                           return name;
                         });

}  // namespace
}  // namespace lockstep::train
