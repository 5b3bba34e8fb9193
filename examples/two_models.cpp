// SPDX-License-Identifier: Apache-2.0
// Two models, two losses and two optimizers under one GradScaler, as in PyTorch's notes: both losses need both outputs,
// so the first backward pass keeps the graph. Ends with 0 when both losses are small.
#include <lockstep/lockstep.h>

#include <cstdio>

using namespace lockstep;

int main() try {
  auto world = comm::World::from_environment();
  auto dataset = data::make_dataset({.train = data::SyntheticOptions{.samples = 256, .shape = {8}, .classes = 4}},
                                    data::Split::kTrain);
  const auto build = [&](std::uint64_t seed) {
    return model_zoo::build(model_zoo::MlpOptions{.hidden = {32}}, {dataset->sample_shape(), 4}, seed);
  };
  auto model0 = build(1), model1 = build(2);
  auto optimizer0 = optim::sgd(model0->parameters(), {.lr = 0.05});
  auto optimizer1 = optim::adam(model1->parameters(), {.lr = 0.01});
  amp::initialize({model0.get(), model1.get()}, {optimizer0.get(), optimizer1.get()},
                  {.opt_level = amp::OptLevel::kO1, .dtype = DType::kFloat16});
  comm::DistributedDataParallel ddp0(*model0, world), ddp1(*model1, world);
  amp::GradScaler scaler(world);
  data::Loader loader(dataset, {.global_batch = 32, .rank = world.rank(), .world_size = world.size()});
  double first = 0, last = 0;
  for (int step = 0; step < 200; ++step) {
    const data::Batch batch = loader.next();
    optimizer0->zero_grad();
    optimizer1->zero_grad();
    const comm::ShareOutput output0 = ddp0.forward(batch), output1 = ddp1.forward(batch);
    const ops::LossOptions mean{.divisor = output0.loss_divisor()};
    const Tensor loss0 = ops::cross_entropy(2 * output0 + 3 * output1, batch.target, mean);
    const Tensor loss1 = ops::cross_entropy(3 * output0 - 5 * output1, batch.target, mean);
    autograd::backward(scaler.scale(loss0), {}, {.retain_graph = true});
    scaler.scale(loss1).backward();
    scaler.unscale_(*optimizer0);  // one optimizer's gradients may be looked at, the other's not
    optim::clip_grad_norm_(model0->parameters(), 1.0);
    scaler.step(*optimizer0);
    scaler.step(*optimizer1);
    scaler.update();  // once, for both
    last = loss0.item() + loss1.item();
    if (step == 0) first = last;
  }
  std::printf("losses %.3f, at first %.3f\n", last, first);
  return last < first / 2 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n%s\n", error.what(), error.advice().c_str());
  return static_cast<int>(error.code());
}
