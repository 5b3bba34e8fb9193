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

/// Numbers from `low` up to 1, so that no function is left its domain and no branch is always the same.
Tensor numbers(const Shape& shape, DType dtype, float low) {
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = low + (1 - low) * static_cast<float>(i * 2654435761u % 1000) / 1000;
  }
  const Tensor tensor = Tensor::empty(shape, dtype);
  backend(kCpu).cast(Tensor::from(values, shape), tensor);
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
        positive(numbers({rows, channels}, dtype, 0.1f)),
        mixed(numbers({rows, channels}, dtype, -1)),
        mask(ones({rows, channels}, DType::kBool)),
        row(ones({channels}, dtype)),
        column(ones({rows, 1}, dtype)),
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
  Tensor positive, mixed;
  Tensor mask, row, column;
  Tensor master, first, second;
  ArenaSegment segment;
};

/// A step whose numbers change nothing.
StepScalars scalars() {
  static const float one = 1.0f, none = 0.0f;
  static const std::int64_t step = 3;
  return {.inverse_scale = &one, .found_inf = &none, .learning_rate = &none, .steps = &step};
}

/// A function of one number, as beside PyTorch (tests/bench/pytorch_loops.py).
void map(const Backend& on, const UnaryFunction& function, const Data& d) { on.unary(function, d.positive, d.y); }

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
      {"neg", 2, [](const Backend& on, const Data& d) { map(on, Unary::kNeg, d); }},
      {"abs", 2, [](const Backend& on, const Data& d) { map(on, Unary::kAbs, d); }},
      {"sqrt", 2, [](const Backend& on, const Data& d) { map(on, Unary::kSqrt, d); }},
      {"rsqrt", 2, [](const Backend& on, const Data& d) { map(on, Unary::kRsqrt, d); }},
      {"reciprocal", 2, [](const Backend& on, const Data& d) { map(on, Unary::kReciprocal, d); }},
      {"exp", 2, [](const Backend& on, const Data& d) { map(on, Unary::kExp, d); }},
      {"expm1", 2, [](const Backend& on, const Data& d) { map(on, Unary::kExpm1, d); }},
      {"log", 2, [](const Backend& on, const Data& d) { map(on, Unary::kLog, d); }},
      {"log1p", 2, [](const Backend& on, const Data& d) { map(on, Unary::kLog1p, d); }},
      {"log2", 2, [](const Backend& on, const Data& d) { map(on, Unary::kLog2, d); }},
      {"log10", 2, [](const Backend& on, const Data& d) { map(on, Unary::kLog10, d); }},
      {"sin", 2, [](const Backend& on, const Data& d) { map(on, Unary::kSin, d); }},
      {"cos", 2, [](const Backend& on, const Data& d) { map(on, Unary::kCos, d); }},
      {"tan", 2, [](const Backend& on, const Data& d) { map(on, Unary::kTan, d); }},
      {"sinh", 2, [](const Backend& on, const Data& d) { map(on, Unary::kSinh, d); }},
      {"cosh", 2, [](const Backend& on, const Data& d) { map(on, Unary::kCosh, d); }},
      {"asin", 2, [](const Backend& on, const Data& d) { map(on, Unary::kAsin, d); }},
      {"acos", 2, [](const Backend& on, const Data& d) { map(on, Unary::kAcos, d); }},
      {"erf", 2, [](const Backend& on, const Data& d) { map(on, Unary::kErf, d); }},
      {"silu", 2, [](const Backend& on, const Data& d) { map(on, Unary::kSilu, d); }},
      {"tanh", 2, [](const Backend& on, const Data& d) { map(on, Unary::kTanh, d); }},
      {"sigmoid", 2, [](const Backend& on, const Data& d) { map(on, Unary::kSigmoid, d); }},
      {"leaky_relu", 2,
       [](const Backend& on, const Data& d) {
         on.unary({Unary::kLeakyRelu, 0.01}, d.mixed, d.y);
       }},
      {"elu", 2,
       [](const Backend& on, const Data& d) {
         on.unary({Unary::kElu, 1}, d.mixed, d.y);
       }},
      {"softplus", 2,
       [](const Backend& on, const Data& d) {
         on.unary({Unary::kSoftplus, 1, 20}, d.mixed, d.y);
       }},
      {"clamp", 2,
       [](const Backend& on, const Data& d) {
         on.unary({Unary::kClamp, -0.5, 0.5}, d.mixed, d.y);
       }},
      {"exp_backward", 3,
       [](const Backend& on, const Data& d) { on.unary_backward(Unary::kExp, d.positive, d.y, d.z); }},
      {"silu_backward", 3,
       [](const Backend& on, const Data& d) { on.unary_backward(Unary::kSilu, d.mixed, d.y, d.z); }},
      {"div", 3, [](const Backend& on, const Data& d) { on.binary(Binary::kDiv, d.x, d.y, d.z); }},
      {"maximum", 3, [](const Backend& on, const Data& d) { on.binary(Binary::kMaximum, d.positive, d.mixed, d.z); }},
      {"pow", 3, [](const Backend& on, const Data& d) { on.binary(Binary::kPow, d.positive, d.mixed, d.z); }},
      {"pow_1.7", 2,
       [](const Backend& on, const Data& d) { on.binary_with_number(Binary::kPow, d.positive, 1.7, false, d.z); }},
      {"add_number", 2,
       [](const Backend& on, const Data& d) { on.binary_with_number(Binary::kAdd, d.x, 0.5, false, d.z); }},
      {"add_row", 2, [](const Backend& on, const Data& d) { on.add(d.x, d.row, d.z); }},
      {"add_column", 2, [](const Backend& on, const Data& d) { on.add(d.x, d.column, d.z); }},
      {"sub_row_from_column", 1,
       [](const Backend& on, const Data& d) { on.binary(Binary::kSub, d.column, d.row, d.z); }},
      {"less", 2.25, [](const Backend& on, const Data& d) { on.binary(Binary::kLess, d.positive, d.mixed, d.mask); }},
      {"where", 3.25, [](const Backend& on, const Data& d) { on.ternary({Ternary::kWhere}, d.mask, d.x, d.y, d.z); }},
      {"addcmul", 4, [](const Backend& on, const Data& d) { on.ternary({Ternary::kAddcmul}, d.x, d.y, d.w, d.z); }},
      {"uniform", 1, [](const Backend& on, const Data& d) { on.random(Distribution::kUniform, 0, 1, {}, 0, d.z); }},
      {"normal", 1, [](const Backend& on, const Data& d) { on.random(Distribution::kNormal, 0, 1, {}, 0, d.z); }},
      {"dropout", 2, [](const Backend& on, const Data& d) { on.dropout(d.x, 0.5, {}, 0, d.y); }},
      {"softmax", 2, [](const Backend& on, const Data& d) { on.softmax(d.x, false, d.y); }},
      {"sum_rows", 1, [](const Backend& on, const Data& d) { on.sum_rows(d.x, false, d.a); }},
      {"batch_norm_statistics", 1, [](const Backend& on, const Data& d) { on.batch_norm_statistics(d.x, d.a, d.b); }},
      {"batch_norm_add_relu", 3,
       [](const Backend& on, const Data& d) { on.batch_norm_apply(d.x, d.a, d.b, d.a, d.b, d.y, true, d.z); }},
      {"batch_norm_backward_reduce", 3,
       [](const Backend& on, const Data& d) { on.batch_norm_backward_reduce(d.x, d.a, {d.y}, {d.z}, d.a, d.b, {}); }},
      {"batch_norm_backward_reduce_of_2", 5,
       [](const Backend& on, const Data& d) {
         on.batch_norm_backward_reduce(d.x, d.a, {d.y, d.x, d.w}, {d.z}, d.a, d.b, {});
       }},
      {"batch_norm_backward_apply", 4,
       [](const Backend& on, const Data& d) {
         on.batch_norm_backward_apply(d.x, d.a, d.b, d.a, d.y, {d.z}, d.a, d.b, d.count, d.w);
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
       [](const Backend& on, const Data& d) {
         on.element_step(d.slice(), SgdRule{.momentum = 0.9f}, scalars(), {d.first});
       }},
      {"adam_step", 1,
       [](const Backend& on, const Data& d) {
         on.element_step(d.slice(), AdamRule{}, scalars(), {d.first, d.second});
       }},
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
