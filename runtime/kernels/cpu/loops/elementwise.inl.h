// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"
#include "runtime/kernels/cpu/loops/channels.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

void convert(Input in, Output out, std::int64_t total) {
  if (out.dtype == DType::kFloat32) return widen(in, total, static_cast<float*>(out.data));
  Reader x(in);
  for_each_block(total, [&](std::int64_t begin, std::int64_t n) { narrow(x(begin, n), n, out.from(begin)); });
}

constexpr auto kPlus = [](float a, float b) { return a + b; };
constexpr auto kTimes = [](float a, float b) { return a * b; };

void accumulate(Input in, Output out, std::int64_t n) {
  transform(n, out, kPlus, Reader({out.data, out.dtype}), Reader(in));
}

void add(Input a, Input b, Output out, std::int64_t n) { transform(n, out, kPlus, Reader(a), Reader(b)); }

void multiply(Input a, Input b, Output out, std::int64_t n) { transform(n, out, kTimes, Reader(a), Reader(b)); }

template <class F>
void transform_channels(Input a, const float* b, Output out, std::int64_t rows, std::int64_t channels, F f) {
  const Tiling tiling(rows, channels);
  const TiledParameter tiled_b(b, tiling);
  Reader a_block(a);
  Writer out_block(out);
  for_each_tile(tiling, [&](std::int64_t begin, std::int64_t column, std::int64_t n) {
    transform_block(n, out_block(begin, n), f, a_block(begin, n), tiled_b.data() + column);
    out_block.commit();
  });
}

void add_channels(Input a, const float* b, Output out, std::int64_t rows, std::int64_t channels) {
  transform_channels(a, b, out, rows, channels, kPlus);
}

void multiply_channels(Input a, const float* b, Output out, std::int64_t rows, std::int64_t channels) {
  transform_channels(a, b, out, rows, channels, kTimes);
}

void scale(Input in, float factor, Output out, std::int64_t n) {
  transform(
      n, out, [factor](float x) { return x * factor; }, Reader(in));
}

void activate(Activation activation, Input x, Output y, std::int64_t n) {
  if (activation == Activation::kNone) return convert(x, y, n);
  visit_activation(activation, [&]<class Function>(Function) {
    transform(
        n, y, [](float v) { return Function::value(v); }, Reader(x));
  });
}

void activate_backward(Activation activation, Input at, Input dy, Output dx, std::int64_t n) {
  if (activation == Activation::kNone) return convert(dy, dx, n);
  visit_activation(activation, [&]<class Function>(Function) {
    transform(
        n, dx, [](float v, float d) { return Function::backward(v, d); }, Reader(at), Reader(dy));
  });
}

void dropout(Input x, double p, const DropoutKey& key, std::int64_t first, Output y, std::int64_t total) {
  const CounterRng rng(key.seed, CounterRng::Purpose::kDropout, key.layer, key.step, key.call);
  const Dropout dropout_of(p);
  Reader x_block(x);
  Writer y_block(y);
  alignas(64) std::uint32_t bits[kBlock + 4];
  for_each_block(total, [&](std::int64_t begin, std::int64_t n) {
    // Numbers come in groups of four, whose borders are the global tensor's.
    const std::uint64_t number = static_cast<std::uint64_t>(first + begin);
    const std::uint32_t* own = bits + number % 4;
    const std::int64_t groups = (n + static_cast<std::int64_t>(number % 4) + 3) / 4;
    LOCKSTEP_VECTORIZE for (std::int64_t g = 0; g < groups; ++g) {
      const std::array<std::uint32_t, 4> words = rng.block(number / 4 + static_cast<std::uint64_t>(g));
      for (std::size_t k = 0; k < 4; ++k) bits[4 * g + static_cast<std::int64_t>(k)] = words[k];
    }
    const float* from = x_block(begin, n);
    float* to = y_block(begin, n);
    LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) to[i] = dropout_of(own[i], from[i]);
    y_block.commit();
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
