// SPDX-License-Identifier: Apache-2.0
// A fused step of each optimizer over float32 gradients, and a whole mixed precision step (the check of 16-bit
// gradients with their norm, then one pass that unscales, clips, updates and writes the 16-bit copy), as lines NAME
// DTYPE MILLISECONDS GB/S, of what it has to read and write:
//   OMP_NUM_THREADS=1 build/release/bin/optimizers_bench [NAME...]
// tests/bench/beside_pytorch.py runs it beside PyTorch.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "runtime/kernels/arena.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/decisions.h"
#include "tests/bench/stopwatch.h"

namespace lockstep::kernels {
namespace {

/// Layers of [width, width] and [width].
struct Model {
  Model(std::int64_t width, int layers) {
    std::int64_t begin = 0;
    for (int i = 0; i < 2 * layers; ++i) {
      const std::int64_t end = begin + (i % 2 == 0 ? width * width : width);
      segments.push_back({.begin = begin, .end = end, .weight_decay = 0.01f, .parameter = i});
      begin = end;
    }
    for (Tensor* tensor : {&master, &grad, &a, &b, &c}) {
      *tensor = Tensor::empty({begin}, DType::kFloat32);
      fill(*tensor, 0.01);
    }
    steps = Tensor::zeros({2 * layers}, DType::kInt64);
    fill(steps, 3);
    rates = Tensor::zeros({2 * layers, 2}, DType::kFloat32);
    slice = {.master = master, .grad = grad, .segments = segments};
    flags = Tensor::empty({2 * layers}, DType::kFloat32);
    squares = Tensor::empty({2 * layers}, DType::kFloat64);
    clipping = Tensor::empty({2}, DType::kFloat32);
    scalars = {.inverse_scale = &one,
               .found_inf = &zero,
               .learning_rate = &tiny,
               .steps = static_cast<const std::int64_t*>(steps.data())};
  }

  /// From now on gradients and a copy of the weights are of this dtype.
  void reduce_to(DType dtype) {
    slice.grad = Tensor::empty(master.shape(), dtype);
    slice.copy = Tensor::empty(master.shape(), dtype);
    cast(grad, slice.grad);
    cast(master, slice.copy);
  }

  std::vector<ArenaSegment> segments;
  Tensor master, grad, a, b, c, steps, rates, flags, squares, clipping;
  ArenaSlice slice;
  StepScalars scalars;
  float one = 1.0f, zero = 0.0f, tiny = 1e-6f;
};

struct Step {
  std::string name;
  int passes;  ///< over the elements, reading or writing 4 bytes
  std::function<void(const ArenaSteps&, Model&)> run;
};

void layered_sgd(const ArenaSteps& on, Model& m, const LayerRateRule& layers, const SgdRule& rule) {
  on.layer_rates(m.slice, layers, m.scalars, m.rates);
  StepScalars scalars = m.scalars;
  scalars.layer_rates = static_cast<const LayerRate*>(m.rates.data());
  on.element_step(m.slice, rule, scalars, {m.a});
}

/// The scalars of a step whose gradients were checked and whose norm is limited to 1.
StepScalars checked(const ArenaSteps& on, const Model& m) {
  on.check_finite(m.slice.grad, 0, m.segments, m.flags, m.squares);
  auto* const norm = static_cast<float*>(m.clipping.data());
  Decisions::on(kCpu).clip_factor(m.squares, m.scalars.inverse_scale, {.max = 1}, norm, norm + 1);
  StepScalars scalars = m.scalars;
  scalars.clip = norm + 1;
  return scalars;
}

const std::vector<Step>& mixed_steps() {
  static const std::vector<Step> all{
      {"mixed_sgd", 6,
       [](const ArenaSteps& on, Model& m) {
         on.element_step(m.slice, SgdRule{.momentum = 0.9f}, checked(on, m), {m.a});
       }},
      {"mixed_adam", 8,
       [](const ArenaSteps& on, Model& m) {
         on.element_step(m.slice, AdamRule{}, checked(on, m), {m.a, m.b});
       }},
  };
  return all;
}

const std::vector<Step>& steps() {
  static const std::vector<Step> all{
      {"copy", 2, [](const ArenaSteps&, Model& m) { cast(m.grad, m.c); }},
      {"sgd", 5,
       [](const ArenaSteps& on, Model& m) { on.element_step(m.slice, SgdRule{.momentum = 0.9f}, m.scalars, {m.a}); }},
      {"adam", 7,
       [](const ArenaSteps& on, Model& m) {
         on.element_step(m.slice, AdamRule{}, m.scalars, {m.a, m.b});
       }},
      {"amsgrad", 9,
       [](const ArenaSteps& on, Model& m) {
         on.element_step(m.slice, AdamRule{.amsgrad = true}, m.scalars, {m.a, m.b, m.c});
       }},
      {"adagrad", 5, [](const ArenaSteps& on, Model& m) { on.element_step(m.slice, AdagradRule{}, m.scalars, {m.a}); }},
      {"lamb", 11, [](const ArenaSteps& on, Model& m) { on.lamb_step(m.slice, {}, m.scalars, m.a, m.b); }},
      {"novograd", 6, [](const ArenaSteps& on, Model& m) { on.novograd_step(m.slice, {}, m.scalars, m.a, m.rates); }},
      {"lars", 7,
       [](const ArenaSteps& on, Model& m) {
         layered_sgd(on, m, {.decay_without_norm = true}, {.momentum = 0.9f, .rate_in_momentum = true});
       }},
      {"larc", 7, [](const ArenaSteps& on, Model& m) { layered_sgd(on, m, {.clip = true}, {.momentum = 0.9f}); }},
  };
  return all;
}

}  // namespace
}  // namespace lockstep::kernels

int main(int argc, char** argv) {
  using namespace lockstep;
  using namespace lockstep::kernels;
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  const auto measure = [&](const Step& step, const std::string& name, std::int64_t width, int layers, DType dtype) {
    if (!wanted.empty() && std::ranges::find(wanted, name) == wanted.end()) return;
    Model model(width, layers);
    if (dtype != DType::kFloat32) model.reduce_to(dtype);
    const double milliseconds = bench::milliseconds_of([&] { step.run(ArenaSteps::on(kCpu), model); });
    const double bytes = 4.0 * step.passes * static_cast<double>(model.master.numel());
    fmt::print("{} {} {:.6f} {:.3f}\n", name, name_of(dtype), milliseconds, 1e-6 * bytes / milliseconds);
  };
  for (const auto& [size, width, layers] : {std::tuple{"small", 128, 4}, {"large", 1024, 12}}) {
    for (const Step& step : steps()) {
      measure(step, fmt::format("{}/{}", step.name, size), width, layers, DType::kFloat32);
    }
    for (const Step& step : mixed_steps()) {
      for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
        measure(step, fmt::format("{}/{}", step.name, size), width, layers, dtype);
      }
    }
  }
}
