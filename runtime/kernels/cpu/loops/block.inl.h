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

/// out[i] = f(in[i]...)
template <class F, class... Readers>
void transform(std::int64_t total, Output out, F f, Readers&&... in) {
  Writer writer(out);
  for_each_block(total, [&](std::int64_t begin, std::int64_t n) {
    transform_block(n, writer(begin, n), f, in(begin, n)...);
    writer.commit();
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
