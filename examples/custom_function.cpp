// SPDX-License-Identifier: Apache-2.0
// Operations of one's own, with a backward of their own: one that runs under autocast as it is, and one that needs
// float32. A network made of them is trained. Ends with 0 when it has learned.
#include <lockstep/lockstep.h>

#include <cstdio>

using namespace lockstep;

/// Every row of x [n, k] times gain [k].
struct Rows : autograd::Function<Rows> {
  static Tensor forward(autograd::FunctionContext& context, const Tensor& x, const Tensor& gain) {
    context.save_for_backward({x, gain});
    return x * gain;
  }
  static std::vector<Tensor> backward(autograd::FunctionContext& context, const std::vector<Tensor>& grads) {
    const auto saved = context.saved_tensors();
    return {grads[0] * saved[1],
            context.needs_input_grad(1) ? ops::sum_to(grads[0] * saved[0], saved[1].shape()) : Tensor()};
  }
};

/// x^2, whose range float16 lacks: under autocast its input is cast, and autocast is off inside.
struct Square : autograd::Function<Square> {
  static constexpr DType kCastInputs = DType::kFloat32;
  static Tensor forward(autograd::FunctionContext& context, const Tensor& x) {
    context.save_for_backward({x});
    return x * x;
  }
  static std::vector<Tensor> backward(autograd::FunctionContext& context, const std::vector<Tensor>& grads) {
    return {grads[0] * context.saved_tensors()[0] * 2};
  }
};

struct Network : nn::Module {
  Tensor gain = add_parameter("gain", {32}, nn::ParameterKind::kWeight, nn::Initializer::constant(1));
  nn::Linear& in = add_module<nn::Linear>("in", 8, 32);
  nn::Linear& out = add_module<nn::Linear>("out", 32, 4);
  Tensor forward(const Tensor& x) override { return out.forward(Square::apply(Rows::apply(in.forward(x), gain))); }
};

int main() try {
  auto world = comm::World::from_environment();
  auto dataset = data::make_dataset({.train = data::SyntheticOptions{.samples = 256, .shape = {8}, .classes = 4}},
                                    data::Split::kTrain);
  Network model;
  nn::initialize(model, 1);
  auto optimizer = optim::adam(model.parameters(), {.lr = 0.01});
  amp::initialize(model, *optimizer, {.opt_level = amp::OptLevel::kO1, .dtype = DType::kFloat16});
  comm::DistributedDataParallel ddp(model, world);
  amp::GradScaler scaler(world);
  step::TrainingStep training(ddp, *optimizer, scaler, ops::cross_entropy);
  data::Loader loader(dataset, {.global_batch = 32, .rank = world.rank(), .world_size = world.size()});
  for (int i = 0; i < 200; ++i) training.run(loader.next());
  std::printf("loss %.3f\n", double{training.outcome().loss});
  return training.outcome().loss < 0.3 ? 0 : 1;
} catch (const Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), static_cast<int>(error.code());
}
