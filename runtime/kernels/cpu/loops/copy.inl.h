// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"

// Copies of many lines. A call of memcpy() costs as much as copying some hundred bytes, and knows best how the
// processor copies many thousand.

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// Copies `n` >= kBytes bytes as pieces of kBytes, several of which are read before they are written. What is left over
/// is copied by a last piece of kBytes that overlaps the one before.
template <int kBytes>
[[gnu::always_inline]] inline void copy_pieces(const std::byte* in, std::byte* out, std::int64_t n) {
  using Piece [[gnu::vector_size(kBytes)]] = std::uint8_t;
  constexpr int kAtOnce = 4;
  const auto load = [in](std::int64_t at, Piece& piece) { std::memcpy(&piece, in + at, kBytes); };
  const auto store = [out](std::int64_t at, const Piece& piece) { std::memcpy(out + at, &piece, kBytes); };
  std::int64_t at = 0;
  for (; at + kAtOnce * kBytes <= n; at += kAtOnce * kBytes) {
    Piece pieces[kAtOnce];
    for (int i = 0; i < kAtOnce; ++i) load(at + i * kBytes, pieces[i]);
    for (int i = 0; i < kAtOnce; ++i) store(at + i * kBytes, pieces[i]);
  }
  Piece piece;
  for (; at + kBytes <= n; at += kBytes) {
    load(at, piece);
    store(at, piece);
  }
  if (at == n) return;
  load(n - kBytes, piece);
  store(n - kBytes, piece);
}

/// kBytes: of the largest pieces.
template <int kBytes>
[[gnu::always_inline]] inline void copy_line(const std::byte* in, std::byte* out, std::int64_t n) {
  constexpr std::int64_t kLong = 4096;
  if (n >= kLong) {
    std::memcpy(out, in, static_cast<std::size_t>(n));
  } else if (n >= kBytes) {
    copy_pieces<kBytes>(in, out, n);
  } else if (n >= 16) {
    copy_pieces<16>(in, out, n);
  } else if (n >= 4) {
    copy_pieces<4>(in, out, n);
  } else {
    for (std::int64_t i = 0; i < n; ++i) out[i] = in[i];
  }
}

/// A vector register.
constexpr int kVectorBytes = std::max<int>(kLanes * sizeof(float), 16);

void copy_lines(const void* in, std::int64_t in_stride, void* out, std::int64_t out_stride, std::int64_t bytes,
                std::int64_t lines) {
  // Between lines that lie apart in the same way all the time, larger pieces were slower.
  constexpr int kBytes = std::min(kVectorBytes, 32);
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  for (std::int64_t i = 0; i < lines; ++i, from += in_stride, to += out_stride) copy_line<kBytes>(from, to, bytes);
}

/// Whether all of the indices are in [0, limit): a negative one has a sign, a large one leaves one to the difference.
bool all_below(const std::int64_t* indices, std::int64_t n, std::int64_t limit) {
  const auto last = static_cast<std::uint64_t>(limit) - 1;
  std::uint64_t signs = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto index = static_cast<std::uint64_t>(indices[i]);
    signs |= index | (last - index);
  }
  return signs >> 63 == 0;
}

template <class T>
bool pick_elements_of(const T* in, std::int64_t extent, const std::int64_t* indices, std::int64_t n, std::int64_t lines,
                      T* out) {
  constexpr int kAtOnce = 8;
  // Several lines, or a part of one, so that their indices are still in the first-level cache when they are used.
  const std::int64_t lines_at_once = std::max<std::int64_t>(kBlock / n, 1);
  for (std::int64_t line = 0; line < lines; line += lines_at_once) {
    const std::int64_t several = std::min(lines_at_once, lines - line);
    for (std::int64_t begin = 0; begin < n; begin += kBlock) {
      const std::int64_t width = std::min(kBlock, n - begin);
      const std::int64_t* at = indices + line * n + begin;
      T* to = out + line * n + begin;
      if (!all_below(at, several * width, extent)) return false;
      for (std::int64_t l = line; l < line + several; ++l, at += width, to += width) {
        const T* from = in + l * extent;
        std::int64_t i = 0;
        for (; i + kAtOnce <= width; i += kAtOnce) {
          T some[kAtOnce];
          for (int k = 0; k < kAtOnce; ++k) some[k] = from[at[i + k]];
          for (int k = 0; k < kAtOnce; ++k) to[i + k] = some[k];
        }
        for (; i < width; ++i) to[i] = from[at[i]];
      }
    }
  }
  return true;
}

bool pick_elements(const void* in, std::int64_t extent, const std::int64_t* indices, std::int64_t n, std::int64_t lines,
                   void* out, std::size_t bytes) {
  bool good = true;
  visit_element(bytes, [&]<class T>(T) {
    good = pick_elements_of(static_cast<const T*>(in), extent, indices, n, lines, static_cast<T*>(out));
  });
  return good;
}

template <class Index>
void pick_lines(const void* in, const Index* indices, std::int64_t bytes, std::int64_t lines, void* out) {
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  for (std::int64_t i = 0; i < lines; ++i, to += bytes) {
    copy_line<kVectorBytes>(from + static_cast<std::int64_t>(indices[i]) * bytes, to, bytes);
  }
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
