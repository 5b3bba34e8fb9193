// SPDX-License-Identifier: Apache-2.0
// The passes through oneDNN in each dtype, as GFLOP/s, beside what the processor's multiply-adds allow:
//   OMP_NUM_THREADS=1 build/release/bin/dnn_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only

#include <benchmark/benchmark.h>

#include <string>

#include "runtime/kernels/assign.h"
#include "runtime/kernels/convolution.h"
#include "runtime/kernels/cpu/peak.h"
#include "runtime/kernels/matmul.h"
#include "runtime/kernels/pooling.h"

namespace lockstep::kernels {
namespace {

Tensor ones(const Shape& shape, DType dtype) {
  const Tensor tensor = Tensor::empty(shape, dtype);
  fill(tensor, 1.0);
  return tensor;
}

void report(benchmark::State& state, double operations) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(operations * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void multiply_add_peak(benchmark::State& state) {
  const cpu::Peak peak = cpu::float32_peak();
  if (peak.run == nullptr) return state.SkipWithError("needs AVX2 or NEON");
  for (auto _ : state) benchmark::DoNotOptimize(peak.run(0.5f));
  report(state, peak.operations);
}

struct Conv {
  const char* name;
  Shape x;
  Shape weight;
  ConvGeometry geometry;
};

void forward(benchmark::State& state, const Conv& conv, DType dtype) {
  const Tensor x = ones(conv.x, dtype);
  const Tensor weight = ones(conv.weight, dtype);
  const Tensor y = Tensor::empty(conv_output_shape(conv.x, conv.weight, conv.geometry), dtype);
  for (auto _ : state) Convolution::on(kCpu).conv_forward(conv.geometry, x, weight, {}, y);
  report(state, 2.0 * static_cast<double>(y.numel() * weight.numel() / weight.size(0)));
}

/// dweight, and dx where `with_dx`.
void backward(benchmark::State& state, const Conv& conv, DType dtype, bool with_dx) {
  const Tensor x = ones(conv.x, dtype);
  const Tensor weight = ones(conv.weight, dtype);
  const Tensor dy = ones(conv_output_shape(conv.x, conv.weight, conv.geometry), dtype);
  const Tensor dx = with_dx ? Tensor::empty(conv.x, dtype) : Tensor();
  const Tensor dweight = Tensor::empty(conv.weight, dtype);
  for (auto _ : state) Convolution::on(kCpu).conv_backward(conv.geometry, x, weight, dy, dx, dweight, {}, false);
  report(state, (with_dx ? 4.0 : 2.0) * static_cast<double>(dy.numel() * weight.numel() / weight.size(0)));
}

struct Matmul {
  const char* name;
  std::int64_t m, n, k;
  bool transpose_a, transpose_b;
};

void matmul(benchmark::State& state, const Matmul& c, DType dtype) {
  const Tensor a = ones(c.transpose_a ? Shape{c.k, c.m} : Shape{c.m, c.k}, dtype);
  const Tensor b = ones(c.transpose_b ? Shape{c.n, c.k} : Shape{c.k, c.n}, dtype);
  const Tensor out = Tensor::empty({c.m, c.n}, dtype);
  for (auto _ : state) MatrixProducts::on(kCpu).matmul(a, c.transpose_a, b, c.transpose_b, {}, false, out);
  report(state, 2.0 * static_cast<double>(c.m * c.n * c.k));
}

void pool(benchmark::State& state, DType dtype) {
  const PoolGeometry geometry{.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  const Tensor x = ones({32, 32, 32, 64}, dtype);
  const Tensor y = Tensor::empty(pool_output_shape(x.shape(), geometry), dtype);
  const Tensor indices = Tensor::empty(y.shape(), DType::kInt32);
  for (auto _ : state) Pooling::on(kCpu).pool_forward(geometry, x, y, indices);
  state.SetBytesProcessed(static_cast<std::int64_t>(x.bytes()) * static_cast<std::int64_t>(state.iterations()));
}

void add_all() {
  benchmark::RegisterBenchmark("multiply_add_peak", multiply_add_peak);
  const ConvGeometry same{.padding = {1, 1}};
  const ConvGeometry halving{.stride = {2, 2}, .padding = {1, 1}};
  const Conv convs[]{{"digits_1", {32, 8, 8, 1}, {32, 3, 3, 1}, same},
                     {"digits_2", {32, 8, 8, 32}, {64, 3, 3, 32}, halving},
                     {"rgb", {32, 32, 32, 3}, {64, 3, 3, 3}, same},
                     {"resnet_64", {32, 32, 32, 64}, {64, 3, 3, 64}, same},
                     {"resnet_128_halving", {32, 32, 32, 64}, {128, 3, 3, 64}, halving},
                     {"resnet_256", {32, 8, 8, 256}, {256, 3, 3, 256}, same},
                     {"resnet_512", {32, 4, 4, 512}, {512, 3, 3, 512}, same},
                     {"volume", {2, 16, 16, 16, 32}, {32, 3, 3, 3, 32}, {.spatial_rank = 3, .padding = {1, 1, 1}}}};
  const Matmul products[]{{"mlp", 512, 1024, 1024, false, false},
                          {"mlp_b_transposed", 512, 1024, 1024, false, true},
                          {"mlp_a_transposed", 1024, 1024, 512, true, false},
                          {"mlp_both", 512, 1024, 1024, true, true},
                          {"head", 32, 10, 1024, false, true},
                          {"head_dx", 32, 1024, 10, false, false},
                          {"head_dweight", 10, 1024, 32, true, false}};
  constexpr DType kDTypes[]{DType::kFloat32, DType::kFloat16, DType::kBFloat16};
  const auto add = [&](const std::string& name, auto function, auto... arguments) {
    for (const DType dtype : kDTypes) {
      benchmark::RegisterBenchmark((name + "/" + std::string(name_of(dtype))).c_str(),
                                   [=](benchmark::State& state) { function(state, arguments..., dtype); })
          ->Unit(benchmark::kMicrosecond)
          ->UseRealTime();
    }
  };
  for (const Conv& conv : convs) {
    const std::string name = conv.name;
    add(name + "/forward", forward, conv);
    add(
        name + "/backward",
        [](benchmark::State& state, const Conv& c, DType dtype) { backward(state, c, dtype, true); }, conv);
    add(
        name + "/backward_weights",
        [](benchmark::State& state, const Conv& c, DType dtype) { backward(state, c, dtype, false); }, conv);
  }
  for (const Matmul& product : products) add("matmul/" + std::string(product.name), matmul, product);
  add("max_pool", pool);
}

}  // namespace
}  // namespace lockstep::kernels

int main(int argc, char** argv) {
  lockstep::kernels::add_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
