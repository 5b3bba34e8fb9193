// SPDX-License-Identifier: Apache-2.0
// Trains a small network in fp16 on as many ranks as were started: typical_loop, or mpirun -n 2 typical_loop. Ends with
// 0 when it has learned.
#include <lockstep/lockstep.h>

#include <cstdio>

using namespace lockstep;

double learned_loss() {
  const auto dataset = data::make_dataset(
      {.train = data::SyntheticOptions{.samples = 256, .shape = {16}, .classes = 4}}, data::Split::kTrain);

  auto world = comm::World::from_environment();  // mpirun, srun, torchrun, or a lone process
  auto model = model_zoo::build(model_zoo::MlpOptions{.hidden = {64}, .dropout = 0.1},
                                {dataset->sample_shape(), dataset->classes()}, /*seed=*/1);
  auto optimizer = optim::sgd(model->parameters(), {.lr = 0.1, .momentum = 0.9});
  amp::initialize(*model, *optimizer, {.opt_level = amp::OptLevel::kO1, .dtype = DType::kFloat16});
  comm::DistributedDataParallel ddp(*model, world);
  amp::GradScaler scaler(world);
  step::TrainingStep training(ddp, *optimizer, scaler, ops::cross_entropy);
  data::Loader loader(dataset, {.global_batch = 32, .rank = world.rank(), .world_size = world.size()});

  // Forward, backward, all-reduce, verdict, update: the same on every rank.
  for (int i = 0; i < 60; ++i) training.run(loader.next());
  return training.outcome().loss;
}

int main() {
  try {
    const double loss = learned_loss();
    std::printf("loss %.3f\n", loss);
    return loss < 0.2 ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n%s\n", error.what(), error.advice().c_str());
    return static_cast<int>(error.code());
  }
}
