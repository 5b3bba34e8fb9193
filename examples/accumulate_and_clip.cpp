// SPDX-License-Identifier: Apache-2.0
// The step taken apart: gradients of four micro-batches, added up without communication until the last one, clipped,
// and applied or skipped by all ranks alike. Ends with 0 when the network has learned.
#include <lockstep/lockstep.h>

#include <cstdio>

using namespace lockstep;

constexpr int kMicroBatches = 4;
constexpr double kMaxNorm = 1.0;

double learned_loss() {
  auto world = comm::World::from_environment();
  auto dataset = data::make_dataset({.train = data::SyntheticOptions{.samples = 256, .shape = {16}, .classes = 4}},
                                    data::Split::kTrain);
  auto model =
      model_zoo::build(model_zoo::MlpOptions{.hidden = {64}}, {dataset->sample_shape(), dataset->classes()}, 1);
  auto optimizer = optim::adam(model->parameters(), {.lr = 0.01});
  amp::initialize(*model, *optimizer, {.opt_level = amp::OptLevel::kO1, .dtype = DType::kFloat16});
  comm::DistributedDataParallel ddp(*model, world);
  amp::GradScaler scaler(world);
  data::Loader loader(
      dataset, {.global_batch = 32, .accumulate = kMicroBatches, .rank = world.rank(), .world_size = world.size()});
  double loss_of_step = 0;
  for (int step = 0; step < 60; ++step) {
    optimizer->zero_grad();
    loss_of_step = 0;
    for (int m = 0; m < kMicroBatches; ++m) {
      const data::Batch batch = loader.next();
      const auto no_sync = ddp.no_sync(/*when=*/m + 1 < kMicroBatches);
      const comm::ShareOutput output = ddp.forward(batch);
      // Each rank's loss has a divisor, so that gradients are those of the mean over all samples of the step.
      const Tensor loss = ops::cross_entropy(output, batch.target, {.divisor = output.loss_divisor()});
      scaler.scale(loss).backward();
      loss_of_step += loss.item();
    }
    scaler.unscale_(*optimizer);
    optim::clip_grad_norm_(model->parameters(), kMaxNorm);
    scaler.step(*optimizer);
    scaler.update();
  }
  return loss_of_step;
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
