// SPDX-License-Identifier: Apache-2.0
// A penalty on the gradient of the loss, with a GradScaler, as in PyTorch's notes: the gradient of the scaled loss is a
// part of the graph, unscaled by hand, and its norm is added to the loss. The norm is that of a rank's share of the
// batch. Ends with 0 when the network has learned and its gradient is small.
#include <lockstep/lockstep.h>

#include <cstdio>

using namespace lockstep;

int main() try {
  auto world = comm::World::from_environment();
  auto dataset = data::make_dataset({.train = data::SyntheticOptions{.samples = 256, .shape = {8}, .classes = 4}},
                                    data::Split::kTrain);
  auto model = model_zoo::build(model_zoo::MlpOptions{.hidden = {32}, .activation = ops::Activation::kTanh},
                                {dataset->sample_shape(), 4}, /*seed=*/1);
  auto optimizer = optim::adam(model->parameters(), {.lr = 0.01});
  amp::initialize(*model, *optimizer, {.opt_level = amp::OptLevel::kO1, .dtype = DType::kFloat16});
  comm::DistributedDataParallel ddp(*model, world);
  amp::GradScaler scaler(world);
  std::vector<Tensor> weights;
  for (const nn::Parameter& parameter : model->parameters()) weights.push_back(parameter.tensor);
  data::Loader loader(dataset, {.global_batch = 32, .rank = world.rank(), .world_size = world.size()});
  double first = 0, loss_now = 0, norm_now = 0;
  for (int step = 0; step < 200; ++step) {
    const data::Batch batch = loader.next();
    optimizer->zero_grad();
    const comm::ShareOutput output = ddp.forward(batch);
    Tensor loss = ops::cross_entropy(output, batch.target, {.divisor = output.loss_divisor()});

    // Not backward(): these gradients go into no parameter, and are of the scaled loss.
    const auto scaled = autograd::grad(scaler.scale(loss), weights, {}, {.create_graph = true});
    const double inverse = 1 / double{scaler.get_scale()};
    Tensor squares = Tensor::zeros({1}, DType::kFloat32);
    for (const Tensor& gradient : scaled) squares = squares + ops::sum(ops::pow(gradient * inverse, 2));
    const Tensor norm = ops::sqrt(squares);
    loss_now = loss.item(), norm_now = norm.item();
    if (step == 0) first = loss_now;
    loss = loss + 0.1 * norm;

    scaler.scale(loss).backward();  // through the gradients too
    scaler.step(*optimizer);
    scaler.update();
  }
  std::printf("loss %.3f, at first %.3f; norm of its gradient %.3f\n", loss_now, first, norm_now);
  return loss_now < first / 2 && norm_now < 1 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n%s\n", error.what(), error.advice().c_str());
  return static_cast<int>(error.code());
}
