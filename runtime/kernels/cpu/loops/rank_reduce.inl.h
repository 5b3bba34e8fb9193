// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// The arguments of rank_reduce, without the dtype.
struct RankReduce {
  RankReduction reduction;
  std::int64_t count;
  std::span<const void* const> sources;
  std::span<const float> premultiply;
  double factor;
  std::span<void* const> outputs;
};

/// One vector of the result; load(r) gives the vector of rank r. A NaN of any rank wins.
template <class Load>
Lanes reduce_vector(const RankReduce& job, Load load) {
  if (job.reduction == RankReduction::kMax) {
    Lanes largest = load(0);
    for (std::size_t r = 1; r < job.sources.size(); ++r) {
      const Lanes x = load(r);
      largest = x > largest ? x : largest;
      largest = x != x ? x : largest;
    }
    return largest;
  }
  Lanes sum = job.premultiply[0] * load(0);
  for (std::size_t r = 1; r < job.sources.size(); ++r) sum += job.premultiply[r] * load(r);
  return static_cast<float>(job.factor) * sum;
}

/// Reduces in registers alone, since memory limits this loop. It prefetches a page ahead, for writing: the processor
/// itself stops prefetching at the end of each page, and fetches lines for reading that it then has to own (measured:
/// 15 % faster).
template <class Format>
void reduce_floats(const RankReduce& job) {
  using Element = typename Format::Element;
  constexpr std::int64_t kAhead = 4096 / sizeof(Element);
  const auto source = [&](std::size_t r) { return static_cast<const Element*>(job.sources[r]); };
  std::int64_t i = 0;
  for (; i + kLanes <= job.count; i += kLanes) {
    for (std::size_t r = 0; r < job.sources.size(); ++r) __builtin_prefetch(source(r) + i + kAhead, 1);
    const Lanes result = reduce_vector(job, [&](std::size_t r) { return Format::load(source(r) + i); });
    for (void* out : job.outputs) Format::store(static_cast<Element*>(out) + i, result);
  }
  if (i == job.count) return;
  const std::int64_t rest = job.count - i;
  const Lanes result = reduce_vector(job, [&](std::size_t r) { return load_some<Format>(source(r) + i, rest); });
  for (void* out : job.outputs) store_some<Format>(static_cast<Element*>(out) + i, result, rest);
}

template <class T>
T weighted(double weight, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(weight) * value;
  } else {
    return value;
  }
}

/// a + b; integers wrap around, since what a peer sends may be anything.
template <class T>
T wrapped_sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Bits = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Bits>(a) + static_cast<Bits>(b));
  } else {
    return a + b;
  }
}

/// Reduces the types that no gradient has, block by block.
template <class T>
void reduce_others(const RankReduce& job) {
  alignas(64) T result[kBlock];
  for_each_block(job.count, [&](std::int64_t begin, std::int64_t n) {
    for (std::size_t r = 0; r < job.sources.size(); ++r) {
      const T* values = static_cast<const T*>(job.sources[r]) + begin;
      if (job.reduction == RankReduction::kMax) {
        for (std::int64_t i = 0; i < n; ++i) {
          const bool wins = r == 0 || values[i] > result[i] || values[i] != values[i];
          result[i] = wins ? values[i] : result[i];
        }
      } else {
        const float weight = job.premultiply[r];
        for (std::int64_t i = 0; i < n; ++i)
          result[i] = wrapped_sum(r == 0 ? T{0} : result[i], weighted(static_cast<double>(weight), values[i]));
      }
    }
    if (job.reduction == RankReduction::kSum) {
      for (std::int64_t i = 0; i < n; ++i) result[i] = weighted(job.factor, result[i]);
    }
    for (void* out : job.outputs) std::copy_n(result, n, static_cast<T*>(out) + begin);
  });
}

void rank_reduce(RankReduction reduction, DType dtype, std::int64_t count, std::span<const void* const> sources,
                 std::span<const float> premultiply, double factor, std::span<void* const> outputs) {
  const RankReduce job{reduction, count, sources, premultiply, factor, outputs};
  switch (dtype) {
    case DType::kFloat32:
      return reduce_floats<FloatLanes>(job);
    case DType::kFloat16:
      return reduce_floats<HalfLanes>(job);
    case DType::kBFloat16:
      return reduce_floats<BFloat16Lanes>(job);
    case DType::kFloat64:
      return reduce_others<double>(job);
    case DType::kInt32:
      return reduce_others<std::int32_t>(job);
    case DType::kInt64:
      return reduce_others<std::int64_t>(job);
    case DType::kUInt8:
    case DType::kBool:
      return;  // refused by rank_reduce
  }
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
