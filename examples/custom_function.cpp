// SPDX-License-Identifier: Apache-2.0
// The custom functions of PyTorch's notes: MyMM runs under autocast as its caller does, MyFloat32Func needs float32
// whatever its caller does. A network made of them is trained. Ends with 0 when it has learned.
#include <lockstep/lockstep.h>

#include <cstdio>

using namespace lockstep;

/// custom_fwd and custom_bwd are what every Function does: backward() runs in the autocast state of forward().
struct MyMM : autograd::Function<MyMM> {
  static Tensor forward(autograd::FunctionContext& context, const Tensor& a, const Tensor& b) {
    context.save_for_backward({a, b});
    return ops::matmul(a, b);
  }
  static std::vector<Tensor> backward(autograd::FunctionContext& context, const std::vector<Tensor>& grads) {
    const auto saved = context.saved_tensors();
    return {ops::matmul(grads[0], false, saved[1], true), ops::matmul(saved[0], true, grads[0], false)};
  }
};

/// custom_fwd(cast_inputs=torch.float32): under autocast its input is cast, and autocast is off inside. Computes x^2,
/// whose range float16 lacks.
struct MyFloat32Func : autograd::Function<MyFloat32Func> {
  static constexpr DType kCastInputs = DType::kFloat32;
  static Tensor forward(autograd::FunctionContext& context, const Tensor& input) {
    context.save_for_backward({input});
    return input * input;
  }
  static std::vector<Tensor> backward(autograd::FunctionContext& context, const std::vector<Tensor>& grads) {
    return {grads[0] * context.saved_tensors()[0] * 2};
  }
};

struct Network : nn::Module {
  Tensor weight = add_parameter("weight", {8, 32}, nn::ParameterKind::kWeight, nn::Initializer::uniform(0.35));
  nn::Linear& out = add_module<nn::Linear>("out", 32, 4);
  Tensor forward(const Tensor& x) override { return out.forward(MyFloat32Func::apply(MyMM::apply(x, weight))); }
};

int main() try {
  auto world = comm::World::from_environment();
  auto dataset = data::make_dataset({.train = data::SyntheticOptions{.samples = 256, .shape = {8}, .classes = 4}},
                                    data::Split::kTrain);
  Network model;
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
