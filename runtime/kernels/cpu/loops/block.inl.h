// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/lanes.inl.h"

// How the loops see memory: as blocks of float. float32 is read and written in place; 16-bit elements pass through a
// buffer that stays in the first-level cache, are widened exactly and rounded once.

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

constexpr std::int64_t kBlock = 512;

class Reader {
 public:
  explicit Reader(Input in) : in_(in) {}

  /// n <= kBlock elements from `begin` on; valid until the next call.
  const float* operator()(std::int64_t begin, std::int64_t n) {
    if (in_.dtype == DType::kFloat32) return static_cast<const float*>(in_.data) + begin;
    widen(in_.from(begin), n, buffer_);
    return buffer_;
  }

 private:
  Input in_;
  alignas(64) float buffer_[kBlock];
};

class Writer {
 public:
  explicit Writer(Output out) : out_(out) {}

  /// Where to put n <= kBlock elements from `begin` on, before commit().
  float* operator()(std::int64_t begin, std::int64_t n) {
    begin_ = begin;
    n_ = n;
    return in_place() ? static_cast<float*>(out_.data) + begin : buffer_;
  }
  void commit() {
    if (!in_place()) narrow(buffer_, n_, out_.from(begin_));
  }

 private:
  bool in_place() const { return out_.dtype == DType::kFloat32; }

  Output out_;
  std::int64_t begin_ = 0;
  std::int64_t n_ = 0;
  alignas(64) float buffer_[kBlock];
};

/// Calls f(begin, n) for the blocks of [0, n).
template <class F>
void for_each_block(std::int64_t total, F f) {
  for (std::int64_t begin = 0; begin < total; begin += kBlock) f(begin, std::min(kBlock, total - begin));
}

/// n copies of a value in a buffer; may write kLanes - 1 elements more, which the buffer has room for.
inline void fill_lanes(float* to, std::int64_t n, float value) {
  const Lanes same = broadcast(value);
  for (std::int64_t i = 0; i < n; i += kLanes) store_float(to + i, same);
}

template <class Out, class F, class... In>
void transform_block(std::int64_t n, Out* out, F f, const In*... in) {
  LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) out[i] = f(in[i]...);
}

constexpr std::int64_t kTile = 32;  ///< elements: some vectors

/// A tile whose elements are widened, computed on and rounded in registers: the compiler makes whole vectors of each of
/// these arrays and never stores them.
template <class Format, class F, class... In>
[[gnu::always_inline]] inline void transform_tile(typename Format::Element* out, F f, const In*... in) {
  alignas(64) float wide[sizeof...(In)][kTile];
  alignas(64) float result[kTile];
  std::size_t operand = 0;
  const auto widen_tile = [&](const typename Format::Element* from) __attribute__((always_inline)) {
    for (std::int64_t i = 0; i < kTile; i += kLanes) store_float(wide[operand] + i, Format::load(from + i));
    ++operand;
  };
  (widen_tile(in), ...);
  [&]<std::size_t... k>(std::index_sequence<k...>) __attribute__((always_inline)) {
    LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < kTile; ++i) result[i] = f(wide[k][i]...);
  }
  (std::index_sequence_for<In...>{});
  for (std::int64_t i = 0; i < kTile; i += kLanes) Format::store(out + i, load_float(result + i));
}

/// n < kTile elements.
template <class Format, class F, class... In>
void transform_end(std::int64_t n, typename Format::Element* out, F f, const In*... in) {
  if constexpr (std::is_same_v<Format, FloatLanes>) {
    transform_block(n, out, f, in...);
  } else {
    std::uint16_t padded[sizeof...(In)][kTile] = {};
    std::uint16_t result[kTile];
    std::size_t operand = 0;
    (std::copy_n(in, n, padded[operand++]), ...);
    [&]<std::size_t... k>(std::index_sequence<k...>) { transform_tile<Format>(result, f, padded[k]...); }
    (std::index_sequence_for<In...>{});
    std::copy_n(result, n, out);
  }
}

template <class Format, class F, class... In>
void transform_tiles(std::int64_t n, typename Format::Element* out, F f, const In*... in) {
  std::int64_t i = 0;
  for (; i + kTile <= n; i += kTile) transform_tile<Format>(out + i, f, (in + i)...);
  if (i < n) transform_end<Format>(n - i, out + i, f, (in + i)...);
}

/// out[i] = f(in[i]...) where all are of one 16-bit floating dtype. Returns whether they are.
template <class F, class... Inputs>
bool transform_reduced(std::int64_t n, Output out, F f, const Inputs&... in) {
  if (!is_reduced(out.dtype) || ((in.dtype != out.dtype) || ...)) return false;
  const auto transform_as = [&]<class Format>(Format) {
    transform_tiles<Format>(n, elements<Format>(out), f, elements<Format>(in)...);
  };
  if (out.dtype == DType::kFloat16) {
    transform_as(HalfLanes{});
  } else {
    transform_as(BFloat16Lanes{});
  }
  return true;
}

/// out[i] = f(in[i]...), block by block.
template <class F, class... Readers>
void transform_blocks(std::int64_t total, Output out, F f, Readers&&... in) {
  Writer writer(out);
  for_each_block(total, [&](std::int64_t begin, std::int64_t n) {
    transform_block(n, writer(begin, n), f, in(begin, n)...);
    writer.commit();
  });
}

/// out[i] = f(in[i]...)
template <class F, class... Inputs>
void transform(std::int64_t total, Output out, F f, const Inputs&... in) {
  if (!transform_reduced(total, out, f, in...)) transform_blocks(total, out, f, Reader(in)...);
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
