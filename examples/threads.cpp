// SPDX-License-Identifier: Apache-2.0
// Several replicas of a model on threads of one process, as PyTorch's DataParallel: each takes a part of the batch, in
// the caller's autocast scope, and their gradients add up in a fixed order. Ends with 0 when the network has learned.
#include <lockstep/lockstep.h>

#include <cstdio>

using namespace lockstep;

constexpr std::int64_t kReplicas = 2;

int main() try {
  auto world = comm::World::from_environment();
  auto dataset = data::make_dataset({.train = data::SyntheticOptions{.samples = 256, .shape = {16}, .classes = 4}},
                                    data::Split::kTrain);
  const auto build = [&] {
    return model_zoo::build(model_zoo::MlpOptions{.hidden = {64}}, {dataset->sample_shape(), 4}, /*seed=*/1);
  };
  auto model = build();
  auto optimizer = optim::sgd(model->parameters(), {.lr = 0.1, .momentum = 0.9});
  amp::initialize(*model, *optimizer);
  comm::DistributedDataParallel ddp(*model, world);  // gradients of all ranks' replicas
  step::Replicas replicas(*model, build, kReplicas);
  amp::GradScaler scaler(world);
  data::Loader loader(dataset, {.global_batch = 32, .rank = world.rank(), .world_size = world.size()});
  double loss = 0;
  for (int step = 0; step < 60; ++step) {
    const data::Batch batch = loader.next();
    optimizer->zero_grad();
    const amp::Autocast autocast(DType::kFloat16);  // of every replica's thread too
    const auto losses = replicas.backward([&](nn::Module& replica, std::size_t i) {
      const std::int64_t rows = batch.input.size(0), part = static_cast<std::int64_t>(i);
      const std::int64_t begin = part * rows / kReplicas, end = (part + 1) * rows / kReplicas;
      const Tensor output = replica.forward(batch.input.rows(begin, end));
      return scaler.scale(
          ops::cross_entropy(output, batch.target.rows(begin, end), {.divisor = static_cast<double>(rows)}));
    });
    loss = (losses[0].item() + losses[1].item()) / double{scaler.get_scale()};
    scaler.step(*optimizer);
    scaler.update();
  }
  std::printf("loss %.3f\n", loss);
  return loss < 0.2 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n%s\n", error.what(), error.advice().c_str());
  return static_cast<int>(error.code());
}
