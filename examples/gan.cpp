// SPDX-License-Identifier: Apache-2.0
// Two networks with an optimizer and a loss each, which train against each other: a generator learns to draw from a
// normal distribution around 3. Ends with 0 when its samples lie there.
#include <lockstep/lockstep.h>

#include <cmath>
#include <cstdio>

using namespace lockstep;

constexpr std::int64_t kSamples = 64;  // a rank

int main() try {
  auto world = comm::World::from_environment();
  const auto build = [](std::int64_t in, std::uint64_t seed) {
    return model_zoo::build(model_zoo::MlpOptions{.hidden = {32}}, {{in}, 1}, seed);
  };
  auto generator = build(4, 1), critic = build(1, 2);
  auto of_generator = optim::adam(generator->parameters(), {.lr = 0.002, .beta1 = 0.5});
  auto of_critic = optim::adam(critic->parameters(), {.lr = 0.002, .beta1 = 0.5});
  amp::initialize({generator.get(), critic.get()}, {of_generator.get(), of_critic.get()},
                  {.opt_level = amp::OptLevel::kO1, .dtype = DType::kFloat16});
  comm::DistributedDataParallel ddp_generator(*generator, world), ddp_critic(*critic, world);
  amp::GradScaler scale_generator(world), scale_critic(world);  // a scale a loss
  const auto noise = [&](std::int64_t width, std::uint64_t step, double mean) {
    const ops::RandomKey key{.seed = 7, .step = step, .stream = static_cast<std::uint32_t>(width)};
    return ops::normal({kSamples, width}, key, {.mean = mean, .first_element = world.rank() * kSamples * width});
  };
  const Tensor real = ops::ones({kSamples, 1}), fake = Tensor::zeros({kSamples, 1}, DType::kFloat32);
  double mean = 0;
  for (std::uint64_t step = 0; step < 600; ++step) {
    of_critic->zero_grad();
    const Tensor drawn = ddp_generator.forward(noise(4, step, 0));
    const Tensor loss =
        ops::mse(ddp_critic.forward(noise(1, step, 3)), real) + ops::mse(ddp_critic.forward(drawn.detach()), fake);
    scale_critic.scale(loss).backward();
    scale_critic.step(*of_critic);
    scale_critic.update();

    of_generator->zero_grad();
    for (const nn::Parameter& parameter : critic->parameters()) parameter.tensor.set_requires_grad(false);
    scale_generator.scale(ops::mse(ddp_critic.forward(drawn), real)).backward();
    for (const nn::Parameter& parameter : critic->parameters()) parameter.tensor.set_requires_grad(true);
    scale_generator.step(*of_generator);
    scale_generator.update();
    mean = ops::mean(drawn).item();
  }
  std::printf("mean of the generator's samples %.2f\n", mean);
  return std::abs(mean - 3) < 1 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n%s\n", error.what(), error.advice().c_str());
  return static_cast<int>(error.code());
}
