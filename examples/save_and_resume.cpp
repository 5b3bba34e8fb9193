// SPDX-License-Identifier: Apache-2.0
// Saves a run and goes on from its checkpoint: save_and_resume [FOLDER]. Ends with 0 when the run that was interrupted
// has the weights of one that was not, to the bit.
#include <lockstep/lockstep.h>

#include <cstdio>
#include <filesystem>

using namespace lockstep;

/// Trains up to step `last`, from the newest checkpoint in `folder` on where there is one, and saves.
std::string digest_after(comm::World& world, const std::string& folder, std::uint64_t last) {
  auto dataset = data::make_dataset({.train = data::SyntheticOptions{.samples = 100, .shape = {16}, .classes = 4}},
                                    data::Split::kTrain);
  auto model = model_zoo::build(model_zoo::MlpOptions{.hidden = {64}, .dropout = 0.2},
                                {dataset->sample_shape(), dataset->classes()}, 1);
  auto optimizer = optim::adamw(model->parameters(), {.lr = 0.01});
  amp::initialize(*model, *optimizer, {.opt_level = amp::OptLevel::kO1, .dtype = DType::kFloat16});
  comm::DistributedDataParallel ddp(*model, world);
  amp::GradScaler scaler(world);
  step::TrainingStep training(ddp, *optimizer, scaler, ops::cross_entropy);

  step::Checkpoints checkpoints(folder, ddp, *optimizer, scaler);
  const step::Progress start = checkpoints.resume();  // step 0 where there is none
  data::Loader loader(dataset, {.global_batch = 32,
                                .rank = world.rank(),
                                .world_size = world.size(),
                                .start = start.sampler,
                                .first_step = start.step + 1});
  for (std::uint64_t step = start.step; step < last; ++step) training.run(loader.next());
  checkpoints.save({.step = last, .sampler = loader.state()});
  return comm::weights_digest(*model->arena());
}

int main(int argc, char** argv) try {
  auto world = comm::World::from_environment();
  const std::filesystem::path folder = argc > 1 ? argv[1] : "checkpoints";
  const std::string whole = digest_after(world, folder / "whole", 20);
  digest_after(world, folder / "interrupted", 7);
  const std::string resumed = digest_after(world, folder / "interrupted", 20);
  std::printf("%s\n%s\n", whole.c_str(), resumed.c_str());
  return whole == resumed ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n%s\n", error.what(), error.advice().c_str());
  return static_cast<int>(error.code());
}
