// SPDX-License-Identifier: Apache-2.0
// PyTorch's recipe for automatic mixed precision: a few wide linear layers, trained in the default precision and in a
// mixed one, with the time and the peak memory of each. amp_recipe [BATCH WIDTH LAYERS BATCHES]
#include <lockstep/lockstep.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

using namespace lockstep;

struct Sizes {
  std::int64_t batch = 512, width = 4096, layers = 3, batches = 50;
};

void measure(comm::World& world, const Sizes& sizes, bool use_amp) {
  const std::vector<std::int64_t> hidden(static_cast<std::size_t>(sizes.layers - 1), sizes.width);
  auto net = model_zoo::build(model_zoo::MlpOptions{.hidden = hidden}, {{sizes.width}, sizes.width}, 1);
  auto optimizer = optim::sgd(net->parameters(), {.lr = 0.001});
  amp::initialize(*net, *optimizer, {.opt_level = use_amp ? amp::OptLevel::kO1 : amp::OptLevel::kO0});
  comm::DistributedDataParallel ddp(*net, world);
  amp::GradScaler scaler(world, {.enabled = use_amp});
  const Tensor input = ops::normal({sizes.batch, sizes.width}, {.seed = 1});
  const Tensor target = ops::normal({sizes.batch, sizes.width}, {.seed = 2});

  reset_peak(kCpu);
  const auto begin = std::chrono::steady_clock::now();
  double loss = 0;
  for (std::int64_t i = 0; i < sizes.batches; ++i) {
    optimizer->zero_grad();
    const Tensor of_batch = ops::mse(ddp.forward(input), target);
    scaler.scale(of_batch).backward();
    scaler.step(*optimizer);
    scaler.update();
    loss = of_batch.item();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (world.rank() > 0) return;
  std::printf("%s (loss %.4f):\n", use_amp ? "Mixed precision" : "Default precision", loss);
  std::printf("Total execution time = %.3f sec\n", seconds.count());
  std::printf("Max memory used by tensors = %zu bytes\n", memory_statistics(kCpu).peak);
}

int main(int argc, char** argv) try {
  Sizes sizes;
  if (argc > 4) sizes = {std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4])};
  auto world = comm::World::from_environment();
  for (const bool use_amp : {false, true}) measure(world, sizes, use_amp);
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n%s\n", error.what(), error.advice().c_str());
  return static_cast<int>(error.code());
}
