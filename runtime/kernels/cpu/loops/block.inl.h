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

/// Elements of a format that a loop reads.
template <class F>
struct Source {
  using Format = F;
  const typename F::Element* data;

  Source from(std::int64_t element) const { return {data + element}; }
};

template <class F>
Source<F> source(Input in, std::int64_t element) {
  return {elements<F>(in) + element};
}

constexpr std::int64_t kRegisterTile = 32;  ///< elements, some vectors

/// A tile whose elements are widened, computed on and rounded in registers: the compiler makes whole vectors of each of
/// these arrays and never stores them.
template <class Out, bool kPastCaches, class F, class... In>
[[gnu::always_inline]] inline void transform_tile(typename Out::Element* out, F f, Source<In>... in) {
  alignas(64) float wide[sizeof...(In)][kRegisterTile];
  alignas(64) float result[kRegisterTile];
  std::size_t operand = 0;
  const auto widen_tile = [&]<class Format>(Source<Format> from) __attribute__((always_inline)) {
    for (std::int64_t i = 0; i < kRegisterTile; i += kLanes) {
      store_float(wide[operand] + i, Format::load(from.data + i));
    }
    ++operand;
  };
  (widen_tile(in), ...);
  [&]<std::size_t... k>(std::index_sequence<k...>) __attribute__((always_inline)) {
    LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < kRegisterTile; ++i) result[i] = f(wide[k][i]...);
  }
  (std::index_sequence_for<In...>{});
  for (std::int64_t i = 0; i < kRegisterTile; i += kLanes) {
    const Lanes x = load_float(result + i);
    kPastCaches ? Out::stream(out + i, x) : Out::store(out + i, x);
  }
}

/// n < kRegisterTile elements.
template <class Out, class F, class... In>
void transform_end(std::int64_t n, typename Out::Element* out, F f, Source<In>... in) {
  std::tuple<std::array<typename In::Element, kRegisterTile>...> padded{};
  typename Out::Element result[kRegisterTile];
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    (std::copy_n(in.data, n, std::get<k>(padded).data()), ...);
    transform_tile<Out, false>(result, f, Source<In>{std::get<k>(padded).data()}...);
  }
  (std::index_sequence_for<In...>{});
  std::copy_n(result, n, out);
}

/// out[i] = f(in[i]...). Past the caches where `past_caches` and the address allows it.
template <class Out, class F, class... In>
void transform_tiles(std::int64_t n, typename Out::Element* out, bool past_caches, F f, Source<In>... in) {
  std::int64_t i = 0;
  if (past_caches && reinterpret_cast<std::uintptr_t>(out) % 64 == 0) {
    for (; i + kRegisterTile <= n; i += kRegisterTile) transform_tile<Out, true>(out + i, f, in.from(i)...);
  }
  for (; i + kRegisterTile <= n; i += kRegisterTile) transform_tile<Out, false>(out + i, f, in.from(i)...);
  if (i < n) transform_end<Out>(n - i, out + i, f, in.from(i)...);
}

/// out[i] = f(in[i]...) where all are of one 16-bit floating dtype. Returns whether they are.
template <class F, class... Inputs>
bool transform_reduced(std::int64_t n, Output out, F f, const Inputs&... in) {
  if (!is_reduced(out.dtype) || ((in.dtype != out.dtype) || ...)) return false;
  const auto transform_as = [&]<class Format>(Format) {
    transform_tiles<Format>(n, static_cast<std::uint16_t*>(out.data), false, f,
                            Source<Format>{static_cast<const std::uint16_t*>(in.data)}...);
  };
  if (out.dtype == DType::kFloat16) {
    transform_as(HalfLanes{});
  } else {
    transform_as(BFloat16Lanes{});
  }
  return true;
}

/// A loop over the elements of a block, behind a pointer: what walks over the blocks then exists once, not once for
/// each function, which was most of the compiler's work. A call a block costs no time that shows.
struct BlockLoop {
  const void* function;  ///< must outlive this
  void (*run)(const void* function, std::int64_t n, float* out, const float* const* in);
};

/// out[i] = f(in[i]...) with so many operands.
template <std::size_t kOperands, class F>
BlockLoop loop_of(const F& f) {
  return {&f, [](const void* function, std::int64_t n, float* out, const float* const* in) {
            const F own = *static_cast<const F*>(function);  // which no store to `out` can change
            [&]<std::size_t... k>(std::index_sequence<k...>) { transform_block(n, out, own, in[k]...); }
            (std::make_index_sequence<kOperands>());
          }};
}

/// Runs the loop block by block over what the readers give.
template <class... Readers>
[[gnu::noinline]] void transform_blocks(std::int64_t total, Output out, BlockLoop loop, Readers&&... in) {
  Writer writer(out);
  for_each_block(total, [&](std::int64_t begin, std::int64_t n) {
    const float* const operands[] = {in(begin, n)...};
    loop.run(loop.function, n, writer(begin, n), operands);
    writer.commit();
  });
}

/// out[i] = f(in[i]...)
template <class F, class... Inputs>
void transform(std::int64_t total, Output out, F f, const Inputs&... in) {
  if (transform_reduced(total, out, f, in...)) return;
  transform_blocks(total, out, loop_of<sizeof...(in)>(f), Reader(in)...);
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
