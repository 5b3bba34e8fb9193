// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/peak.h"

namespace lockstep::bench {

namespace {

using Lanes8 = float __attribute__((vector_size(32)));
using Lanes16 = float __attribute__((vector_size(64)));

// Each has the instructions of its caller: clang refuses the register of a function without them.
struct Keep8 {
  [[gnu::target("avx2,fma")]] void operator()(Lanes8& sum) const { asm volatile("" : "+v"(sum)); }
};
struct Keep16 {
  [[gnu::target("avx512f,fma")]] void operator()(Lanes16& sum) const { asm volatile("" : "+v"(sum)); }
};

[[gnu::target("avx2,fma")]] float avx2_rounds(float factor) { return multiply_add_rounds<Lanes8>(factor, Keep8()); }
[[gnu::target("avx512f,fma")]] float avx512_rounds(float factor) {
  return multiply_add_rounds<Lanes16>(factor, Keep16());
}

}  // namespace

Peak peak() {
  if (__builtin_cpu_supports("avx512f")) return peak_of<Lanes16>(avx512_rounds);
  if (__builtin_cpu_supports("avx2")) return peak_of<Lanes8>(avx2_rounds);
  return {nullptr, 0};
}

}  // namespace lockstep::bench
