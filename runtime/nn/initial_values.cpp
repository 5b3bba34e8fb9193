// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/initial_values.h"

#include <array>
#include <cmath>
#include <mutex>
#include <numbers>
#include <vector>

#include "runtime/kernels/assign.h"
#include "runtime/nn/module.h"

namespace lockstep::nn {

namespace {

std::mutex made_mutex;
MadeName next_made;  // guarded by made_mutex

/// Number `i` of the stream, of a distribution that `initializer` names.
float drawn(const Initializer& initializer, const CounterRng& stream, std::size_t i) {
  // Numbers 2 i and 2 i + 1 of the stream, which lie in one block.
  const std::array<std::uint32_t, 4> block = stream.block(i / 2);
  const double u = uniform_from_bits(block[i % 2 * 2]);
  if (initializer.kind == Initializer::Kind::kUniform) return static_cast<float>((2.0 * u - 1.0) * initializer.value);
  // Box and Muller: "A note on the generation of random normal deviates", 1958.
  const double radius = std::sqrt(-2.0 * std::log1p(-u));
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(uniform_from_bits(block[i % 2 * 2 + 1]));
  return static_cast<float>(initializer.value * radius * std::cos(angle));
}

}  // namespace

void manual_seed(std::uint64_t seed) {
  const std::lock_guard lock(made_mutex);
  next_made = {seed, 0};
}

MadeName next_made_name() {
  const std::lock_guard lock(made_mutex);
  const MadeName name = next_made;
  ++next_made.number;
  return name;
}

void fill(const Tensor& tensor, const Initializer& initializer, const CounterRng& stream) {
  if (initializer.kind == Initializer::Kind::kConstant) {
    kernels::fill(tensor, static_cast<double>(static_cast<float>(initializer.value)));
  } else {
    std::vector<float> values(static_cast<std::size_t>(tensor.numel()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = drawn(initializer, stream, i);
    kernels::cast(Tensor::from(values, tensor.shape()).to(tensor.device()), tensor);
  }
  tensor.bump_version();
}

void fill(const Tensor& tensor, const Initializer& initializer) {
  const MadeName name = next_made_name();
  // Another call than that of initialize(), whose streams are named by hashes that a number may equal.
  fill(tensor, initializer, CounterRng(name.seed, CounterRng::Purpose::kInitialization, name.number, 0, /*call=*/1));
}

}  // namespace lockstep::nn
