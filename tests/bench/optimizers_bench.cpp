// SPDX-License-Identifier: Apache-2.0
// A fused step of each optimizer over float32 gradients, as lines NAME float32 MILLISECONDS GB/S, of what it has to
// read and write:
//   OMP_NUM_THREADS=1 build/release/bin/optimizers_bench [NAME...]
// tests/bench/beside_pytorch.py runs it beside PyTorch.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "runtime/kernels/backend.h"
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
      backend(kCpu).fill(*tensor, 0.01);
    }
    steps = Tensor::zeros({2 * layers}, DType::kInt64);
    backend(kCpu).fill(steps, 3);
    rates = Tensor::zeros({2 * layers, 2}, DType::kFloat32);
    slice = {.master = master, .grad = grad, .segments = segments};
    scalars = {.inverse_scale = &one,
               .found_inf = &zero,
               .learning_rate = &tiny,
               .steps = static_cast<const std::int64_t*>(steps.data())};
  }

  std::vector<ArenaSegment> segments;
  Tensor master, grad, a, b, c, steps, rates;
  ArenaSlice slice;
  StepScalars scalars;
  float one = 1.0f, zero = 0.0f, tiny = 1e-6f;
};

struct Step {
  std::string name;
  int passes;  ///< over the elements, reading or writing 4 bytes
  std::function<void(const Backend&, Model&)> run;
};

void layered_sgd(const Backend& on, Model& m, const LayerRateRule& layers, const SgdRule& rule) {
  on.layer_rates(m.slice, layers, m.scalars, m.rates);
  StepScalars scalars = m.scalars;
  scalars.layer_rates = static_cast<const LayerRate*>(m.rates.data());
  on.sgd_step(m.slice, rule, scalars, m.a);
}

const std::vector<Step>& steps() {
  static const std::vector<Step> all{
      {"copy", 2, [](const Backend& on, Model& m) { on.cast(m.grad, m.c); }},
      {"sgd", 5, [](const Backend& on, Model& m) { on.sgd_step(m.slice, {.momentum = 0.9f}, m.scalars, m.a); }},
      {"adam", 7, [](const Backend& on, Model& m) { on.adam_step(m.slice, {}, m.scalars, m.a, m.b, {}); }},
      {"amsgrad", 9,
       [](const Backend& on, Model& m) { on.adam_step(m.slice, {.amsgrad = true}, m.scalars, m.a, m.b, m.c); }},
      {"adagrad", 5, [](const Backend& on, Model& m) { on.adagrad_step(m.slice, {}, m.scalars, m.a); }},
      {"lamb", 11, [](const Backend& on, Model& m) { on.lamb_step(m.slice, {}, m.scalars, m.a, m.b); }},
      {"novograd", 6, [](const Backend& on, Model& m) { on.novograd_step(m.slice, {}, m.scalars, m.a, m.rates); }},
      {"lars", 7,
       [](const Backend& on, Model& m) {
         layered_sgd(on, m, {.decay_without_norm = true}, {.momentum = 0.9f, .rate_in_momentum = true});
       }},
      {"larc", 7, [](const Backend& on, Model& m) { layered_sgd(on, m, {.clip = true}, {.momentum = 0.9f}); }},
  };
  return all;
}

}  // namespace
}  // namespace lockstep::kernels

int main(int argc, char** argv) {
  using namespace lockstep;
  using namespace lockstep::kernels;
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  for (const auto& [size, width, layers] : {std::tuple{"small", 128, 4}, {"large", 1024, 12}}) {
    for (const Step& step : steps()) {
      const std::string name = fmt::format("{}/{}", step.name, size);
      if (!wanted.empty() && std::ranges::find(wanted, name) == wanted.end()) continue;
      Model model(width, layers);
      const double milliseconds = bench::milliseconds_of([&] { step.run(backend(kCpu), model); });
      const double bytes = 4.0 * step.passes * static_cast<double>(model.master.numel());
      fmt::print("{} float32 {:.6f} {:.3f}\n", name, milliseconds, 1e-6 * bytes / milliseconds);
    }
  }
}
