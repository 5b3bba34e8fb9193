// SPDX-License-Identifier: Apache-2.0
// The fused loops in each dtype, as bytes/s of what they must read and write, beside a copy:
//   OMP_NUM_THREADS=1 build/release/bin/loops_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only

#include <benchmark/benchmark.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "runtime/kernels/backend.h"
#include "runtime/kernels/rank_reduce.h"

namespace lockstep::kernels {
namespace {

Tensor ones(const Shape& shape, DType dtype) {
  const Tensor tensor = Tensor::empty(shape, dtype);
  backend(kCpu).fill(tensor, 1.0);
  return tensor;
}

/// What the loops work on: activations [rows, channels] and their channels' parameters.
struct Data {
  Data(std::int64_t rows, std::int64_t channels, DType dtype)
      : x(ones({rows, channels}, dtype)),
        y(ones({rows, channels}, dtype)),
        z(ones({rows, channels}, dtype)),
        w(ones({rows, channels}, dtype)),
        a(ones({channels}, DType::kFloat32)),
        b(ones({channels}, DType::kFloat32)),
        count(ones({}, DType::kFloat32)),
        master(ones({rows * channels}, DType::kFloat32)),
        first(ones({rows * channels}, DType::kFloat32)),
        second(ones({rows * channels}, DType::kFloat32)),
        segment{.begin = 0, .end = rows * channels} {}

  /// x as gradients, y as compute copies.
  ArenaSlice slice() const {
    ArenaSlice slice;
    slice.master = master;
    slice.grad = x.reshaped({x.numel()});
    slice.copy = y.reshaped({y.numel()});
    slice.segments = {&segment, 1};
    return slice;
  }

  Tensor x, y, z, w;
  Tensor a, b, count;
  Tensor master, first, second;
  ArenaSegment segment;
};

/// A step whose numbers change nothing.
StepScalars scalars() {
  static const float one = 1.0f, none = 0.0f;
  static const std::int64_t step = 3;
  return {.inverse_scale = &one, .found_inf = &none, .learning_rate = &none, .steps = &step};
}

struct Loop {
  std::string name;
  double passes;  ///< over the elements, reading or writing
  std::function<void(const Backend&, const Data&)> run;
};

const std::vector<Loop>& loops() {
  static const std::vector<Loop> all{
      {"copy", 2, [](const Backend& on, const Data& d) { on.cast(d.x, d.y); }},
      {"add", 3, [](const Backend& on, const Data& d) { on.add(d.x, d.y, d.z); }},
      {"gelu", 2, [](const Backend& on, const Data& d) { on.activate(Activation::kGelu, d.x, d.y); }},
      {"dropout", 2, [](const Backend& on, const Data& d) { on.dropout(d.x, 0.5, {}, 0, d.y); }},
      {"softmax", 2, [](const Backend& on, const Data& d) { on.softmax(d.x, false, d.y); }},
      {"sum_rows", 1, [](const Backend& on, const Data& d) { on.sum_rows(d.x, false, d.a); }},
      {"batch_norm_statistics", 1, [](const Backend& on, const Data& d) { on.batch_norm_statistics(d.x, d.a, d.b); }},
      {"batch_norm_add_relu", 3,
       [](const Backend& on, const Data& d) { on.batch_norm_apply(d.x, d.a, d.b, d.a, d.b, d.y, true, d.z); }},
      {"batch_norm_backward_reduce", 3,
       [](const Backend& on, const Data& d) { on.batch_norm_backward_reduce(d.x, d.a, d.y, d.z, true, d.a, d.b); }},
      {"batch_norm_backward_apply", 4,
       [](const Backend& on, const Data& d) {
         on.batch_norm_backward_apply(d.x, d.a, d.b, d.a, d.y, d.z, true, d.a, d.b, d.count, d.w, Tensor());
       }},
      {"rank_reduce_of_2", 4,
       [](const Backend&, const Data& d) {
         const std::array<const void*, 2> sources{d.x.data(), d.y.data()};
         const std::array<void*, 2> outputs{d.x.data(), d.y.data()};
         const std::array<float, 2> halves{0.5f, 0.5f};
         rank_reduce(RankReduction::kSum, d.x.dtype(), d.x.numel(), sources, halves, 1, outputs);
       }},
      {"check_finite", 1,
       [](const Backend& on, const Data& d) {
         on.check_finite(d.slice().grad, 0, {&d.segment, 1}, d.a.rows(0, 1), Tensor());
       }},
      {"rescale", 2,
       [](const Backend& on, const Data& d) {
         on.rescale(d.slice().grad, nullptr, 0.0f, 0, {&d.segment, 1}, d.first, d.a.rows(0, 1));
       }},
      // Of the gradients alone: what else a step reads and writes is float32 whatever they are.
      {"sgd_step", 1,
       [](const Backend& on, const Data& d) { on.sgd_step(d.slice(), {.momentum = 0.9f}, scalars(), d.first); }},
      {"adam_step", 1,
       [](const Backend& on, const Data& d) { on.adam_step(d.slice(), {}, scalars(), d.first, d.second); }},
  };
  return all;
}

void measure(benchmark::State& state, const Loop& loop, const Shape& shape, DType dtype) {
  const Data data(shape[0], shape[1], dtype);
  for (auto _ : state) loop.run(backend(kCpu), data);
  const double bytes = loop.passes * static_cast<double>(data.x.bytes());
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes * static_cast<double>(state.iterations())));
}

}  // namespace
}  // namespace lockstep::kernels

int main(int argc, char** argv) {
  using namespace lockstep;
  using namespace lockstep::kernels;
  for (const Loop& loop : loops()) {
    // In the second-level cache, with channels that fill no vector, and in memory.
    for (const Shape& shape : {Shape{2048, 64}, Shape{10000, 3}, Shape{50000, 256}}) {
      for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
        const std::string name = loop.name + "/" + shape.str() + "/" + std::string(name_of(dtype));
        benchmark::RegisterBenchmark(
            name.c_str(), [&loop, shape, dtype](benchmark::State& state) { measure(state, loop, shape, dtype); });
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
