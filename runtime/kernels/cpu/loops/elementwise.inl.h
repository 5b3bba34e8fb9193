// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"
#include "runtime/kernels/cpu/loops/words.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

void convert(Input in, Output out, std::int64_t total) {
  if (out.dtype == DType::kFloat32) return widen(in, total, static_cast<float*>(out.data));
  Reader x(in);
  for_each_block(total, [&](std::int64_t begin, std::int64_t n) { narrow(x(begin, n), n, out.from(begin)); });
}

void accumulate(Input in, Output out, std::int64_t n) {
  transform(
      n, out, [](float a, float b) { return a + b; }, Input{out.data, out.dtype}, in);
}

void scale(Input in, float factor, Output out, std::int64_t n) {
  transform(
      n, out, [factor](float x) { return x * factor; }, in);
}

void dropout(Input x, double p, const DropoutKey& key, std::int64_t first, Output y, std::int64_t total) {
  const CounterRng rng(key.seed, CounterRng::Purpose::kDropout, key.layer, key.step, key.call);
  const Dropout dropout_of(p);
  Reader x_block(x);
  Writer y_block(y);
  alignas(64) std::uint32_t bits[kBlock + 4 * kWords];
  for_each_block(total, [&](std::int64_t begin, std::int64_t n) {
    // Numbers come in groups of four, whose borders are the global tensor's.
    const std::uint64_t number = static_cast<std::uint64_t>(first + begin);
    const std::uint32_t* own = bits + number % 4;
    const std::int64_t groups = (n + static_cast<std::int64_t>(number % 4) + 3) / 4;
    random_words(rng, number / 4, groups, bits);
    const float* from = x_block(begin, n);
    float* to = y_block(begin, n);
    LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) to[i] = dropout_of(own[i], from[i]);
    y_block.commit();
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
