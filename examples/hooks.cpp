// SPDX-License-Identifier: Apache-2.0
// Hooks: on a layer's forward and backward passes, on a tensor's gradient, and in place of the gradients' all_reduce.
// Started as hooks, or as mpirun -n 2 hooks.
#include <lockstep/lockstep.h>

#include <cstdio>
#include <memory>

using namespace lockstep;

int main() try {
  auto world = comm::World::from_environment();
  const auto model = model_zoo::build(model_zoo::MlpOptions{.hidden = {16}}, {.sample_shape = {4}, .outputs = 3}, 1);
  const auto optimizer = optim::sgd(model->parameters(), {.lr = 0.1});
  amp::initialize(*model, *optimizer, {.opt_level = amp::OptLevel::kO1, .dtype = DType::kBFloat16});
  comm::DistributedDataParallel ddp(*model, world);

  // The largest activation of the model's last layer, and the norm of the gradient that arrives there.
  double largest = 0, arrived = 0;
  nn::Module* last = nullptr;
  model->for_each([&last](const std::string&, nn::Module& module) { last = &module; });
  HookHandle forward = last->register_forward_hook([&](nn::Module&, std::span<const Tensor>, const Tensor& output) {
    largest = ops::max(ops::abs(output.detach())).item();
    return Tensor();  // the output stays
  });
  last->register_full_backward_hook([&](nn::Module&, std::vector<Tensor>&, const Tensor& grad_output) {
    arrived = ops::vector_norm(grad_output).item();
  });

  // Counts what leaves for the other ranks, and leaves it to DistributedDataParallel.
  std::size_t sent = 0;
  ddp.set_communication_hook("count", [&sent](const comm::GradientBucket& bucket) {
    sent += bucket.gradients.bytes();
    bucket.all_reduce();
  });

  const Tensor x = ops::normal({6, 4}, {.seed = 1}), y = Tensor::from<std::int64_t>({0, 1, 2, 0, 1, 2}, {6});
  const Tensor logits = ddp.forward(x);
  // No gradient of this tensor is larger than 0.01.
  autograd::register_hook(logits, [](const Tensor& grad) { return ops::clamp(grad, -0.01, 0.01); });
  ops::cross_entropy(logits, y).backward();
  optimizer->step();
  std::printf("largest output %.3f, gradient %.4f, %zu bytes of gradients\n", largest, arrived, sent);
  forward.remove();
  return largest > 0 && arrived > 0 && sent > 0 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n%s\n", error.what(), error.advice().c_str());
  return static_cast<int>(error.code());
}
