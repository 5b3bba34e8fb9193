// SPDX-License-Identifier: Apache-2.0
// Finds a learning rate by a range test, then trains with it and reduces it on a plateau of the loss, as PyTorch's
// ReduceLROnPlateau. Ends with 0 when the loss has fallen and the rate was reduced.
#include <lockstep/lockstep.h>

#include <cstdio>
#include <functional>

using namespace lockstep;

/// Trains one step at a rate; gives its loss over all ranks, the same on each.
using StepAt = std::function<double(double rate)>;

/// Calls `train` with the steps of a new model.
void with_new_model(comm::World& world, const std::function<void(const StepAt&)>& train) {
  const auto dataset = data::make_dataset(
      {.train = data::SyntheticOptions{.samples = 256, .shape = {16}, .classes = 4}}, data::Split::kTrain);
  auto model =
      model_zoo::build(model_zoo::MlpOptions{.hidden = {64}}, {dataset->sample_shape(), dataset->classes()}, 1);
  auto optimizer = optim::sgd(model->parameters(), {.lr = 0.1, .momentum = 0.9});
  amp::initialize(*model, *optimizer, {.opt_level = amp::OptLevel::kO1, .dtype = DType::kBFloat16});
  comm::DistributedDataParallel ddp(*model, world);
  amp::GradScaler scaler(world, {.enabled = false});
  step::TrainingStep training(ddp, *optimizer, scaler, ops::cross_entropy);
  data::Loader loader(dataset, {.global_batch = 32, .rank = world.rank(), .world_size = world.size()});
  train([&](double rate) {
    optimizer->set_learning_rate(rate);
    training.run(loader.next());
    return static_cast<double>(training.outcome().loss);
  });
}

int main() try {
  auto world = comm::World::from_environment();
  optim::LrRangeTest test({.from = 1e-5});
  with_new_model(world, [&](const StepAt& step) {
    while (!test.done()) test.add(step(test.rate()));
  });

  optim::ReduceOnPlateau plateau({.factor = 0.5, .patience = 1, .threshold = 0.05}, test.suggestion());
  double loss = 0;
  with_new_model(world, [&](const StepAt& step) {
    for (int epoch = 0; epoch < 20; ++epoch) {
      loss = 0;
      for (int i = 0; i < 8; ++i) loss += step(plateau.learning_rate()) / 8;
      plateau.add(loss);
    }
  });
  std::printf("rate %.2g, then %.2g; loss %.3f\n", test.suggestion(), plateau.learning_rate(), loss);
  return loss < 0.2 && plateau.state().reductions > 0 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n%s\n", error.what(), error.advice().c_str());
  return static_cast<int>(error.code());
}
