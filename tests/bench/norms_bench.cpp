// SPDX-License-Identifier: Apache-2.0
// Normalisation, embedding and upsampling, forward and with the backward pass, as milliseconds a call:
//   OMP_NUM_THREADS=1 build/release/bin/norms_bench [NAME...]
// tests/bench/pytorch_norms.py runs it beside PyTorch.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "runtime/autograd/engine.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/ops/ops.h"
#include "tests/bench/stopwatch.h"

namespace lockstep {
namespace {

using kernels::UpsampleMode;

Tensor random(const Shape& shape, DType dtype, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  for (float& value : values) value = static_cast<float>(generator() * 0x1p-31 - 1.0);
  const Tensor tensor = Tensor::empty(shape, dtype);
  kernels::backend(kCpu).cast(Tensor::from(values, shape), tensor);
  return tensor;
}

struct Case {
  std::string name;
  std::vector<Shape> inputs;
  std::function<Tensor(const std::vector<Tensor>& inputs)> run;
};

Tensor indices(std::int64_t n, std::int64_t rows) {
  std::mt19937 generator(9);
  std::vector<std::int64_t> all(static_cast<std::size_t>(n));
  for (std::int64_t& index : all) index = generator() % rows;
  return Tensor::from(all, {n});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& [rows, channels] : {std::pair{64, 768}, {512, 768}, {4096, 256}, {2048, 4096}}) {
    const Shape x{rows, channels}, w{channels};
    const std::string size = fmt::format("{}x{}", rows, channels);
    all.push_back(
        {"layer_norm/" + size, {x, w, w}, [w](const auto& in) { return ops::layer_norm(in[0], w, in[1], in[2]); }});
    all.push_back({"rms_norm/" + size, {x, w}, [w](const auto& in) { return ops::rms_norm(in[0], w, in[1]); }});
  }
  for (const auto& [n, side, channels] : {std::tuple{8, 28, 128}, {4, 56, 256}}) {
    const Shape x{n, side, side, channels}, w{channels};
    const std::string size = fmt::format("{}x{}x{}x{}", n, side, side, channels);
    all.push_back(
        {"group_norm/" + size, {x, w, w}, [](const auto& in) { return ops::group_norm(in[0], 32, in[1], in[2]); }});
    all.push_back(
        {"instance_norm/" + size, {x, w, w}, [](const auto& in) { return ops::instance_norm(in[0], in[1], in[2]); }});
  }
  for (const auto& [n, rows, width] : {std::tuple{4096, 1000, 512}, {4096, 30000, 256}}) {
    all.push_back({fmt::format("embedding/{}of{}x{}", n, rows, width),
                   {Shape{rows, width}},
                   [at = indices(n, rows)](const auto& in) { return ops::embedding(in[0], at); }});
  }
  const auto add_upsample = [&](const std::string& name, const Shape& x, const std::vector<std::int64_t>& to,
                                UpsampleMode mode) {
    std::string size = fmt::format("{}", fmt::join(x.extents(), "x"));
    all.push_back(
        {"upsample_" + name + "/" + size, {x}, [=](const auto& in) { return ops::upsample(in[0], to, mode); }});
  };
  add_upsample("nearest", {8, 32, 32, 64}, {64, 64}, UpsampleMode::kNearest);
  add_upsample("nearest", {8, 64, 64, 3}, {128, 128}, UpsampleMode::kNearest);
  add_upsample("linear", {8, 512, 64}, {1024}, UpsampleMode::kLinear);
  add_upsample("bilinear", {8, 32, 32, 64}, {64, 64}, UpsampleMode::kLinear);
  add_upsample("bilinear", {8, 64, 64, 3}, {128, 128}, UpsampleMode::kLinear);
  add_upsample("trilinear", {2, 16, 16, 16, 32}, {32, 32, 32}, UpsampleMode::kLinear);
  return all;
}

double milliseconds(const std::function<void()>& run) { return 1e3 * bench::seconds_of(kCpu, run, 0.05, 5); }

void measure(const Case& at, DType dtype) {
  std::vector<Tensor> inputs;
  for (const Shape& shape : at.inputs)
    inputs.push_back(random(shape, dtype, static_cast<std::uint32_t>(inputs.size())));
  const double forward = milliseconds([&] { at.run(inputs); });
  for (const Tensor& input : inputs) input.set_requires_grad(true);
  const Tensor dy = random(at.run(inputs).shape(), dtype, 77);
  const double both = milliseconds([&] { autograd::grad(at.run(inputs), inputs, dy); });
  fmt::print("{} {} {:.6f} {:.6f}\n", at.name, name_of(dtype), forward, both);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  using namespace lockstep;
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  for (const Case& at : cases()) {
    if (!wanted.empty() && std::ranges::find(wanted, at.name) == wanted.end()) continue;
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) measure(at, dtype);
  }
}
