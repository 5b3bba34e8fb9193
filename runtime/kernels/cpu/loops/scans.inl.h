// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// Calls f(step), where step(factor, running, term) ignores an undefined input: its factors are 1, its terms 0.
template <class F>
void visit_scan(Input a, Input b, F f) {
  if (a.data == nullptr) return f([](double, double running, double term) { return running + term; });
  if (b.data == nullptr) return f([](double factor, double running, double) { return factor * running; });
  f([](double factor, double running, double term) { return factor * running + term; });
}

/// Scans `lines` lines of n neighbours each that begin `line_stride` apart. The results of one line depend on each
/// other, so the processor works on several lines at once.
template <int lines, class Step>
[[gnu::always_inline]] inline void scan_neighbours(const float* factors, const float* terms, bool reverse, bool first,
                                                   double* running, float* to, std::int64_t line_stride, std::int64_t n,
                                                   Step step) {
  std::int64_t j = 0;
  if (first && n > 0) {
    const std::int64_t i = reverse ? n - 1 : 0;
    for (int l = 0; l < lines; ++l) {
      running[l] = static_cast<double>(terms[l * line_stride + i]);
      to[l * line_stride + i] = static_cast<float>(running[l]);
    }
    j = 1;
  }
  double now[lines];
  for (int l = 0; l < lines; ++l) now[l] = running[l];
  for (; j < n; ++j) {
    const std::int64_t i = reverse ? n - 1 - j : j;
    for (int l = 0; l < lines; ++l) {
      const std::int64_t at = l * line_stride + i;
      now[l] = step(static_cast<double>(factors[at]), now[l], static_cast<double>(terms[at]));
      to[at] = static_cast<float>(now[l]);
    }
  }
  for (int l = 0; l < lines; ++l) running[l] = now[l];
}

void scan_lines(Input a, Input b, bool reverse, Output y, std::int64_t lines, std::int64_t n) {
  constexpr int kAtOnce = 8;
  Reader a_block(a), b_block(b);
  Writer y_block(y);
  const bool starts_with_term = b.data != nullptr;
  visit_scan(a, b, [&](auto step) {
    // An undefined input is not read; other memory stands in for it.
    const auto read = [](const Input& in, Reader& reader, std::int64_t begin, std::int64_t count,
                         const float* instead) { return in.data == nullptr ? instead : reader(begin, count); };
    if (n * kAtOnce <= kBlock) {
      const std::int64_t at_once = kBlock / n / kAtOnce * kAtOnce;
      for (std::int64_t first = 0; first < lines; first += at_once) {
        const std::int64_t count = std::min(at_once, lines - first);
        float* to = y_block(first * n, count * n);
        const float* terms = read(b, b_block, first * n, count * n, to);
        const float* factors = read(a, a_block, first * n, count * n, to);
        std::int64_t line = 0;
        const auto scan_next = [&](auto some) {
          constexpr int kSome = decltype(some)::value;
          double running[kSome];
          std::fill_n(running, kSome, starts_with_term ? 0.0 : 1.0);
          scan_neighbours<kSome>(factors + line * n, terms + line * n, reverse, starts_with_term, running,
                                 to + line * n, n, n, step);
          line += kSome;
        };
        while (line + kAtOnce <= count) scan_next(std::integral_constant<int, kAtOnce>{});
        while (line < count) scan_next(std::integral_constant<int, 1>{});
        y_block.commit();
      }
      return;
    }
    // Longer lines go through buffers that hold one piece of each of kAtOnce lines.
    constexpr std::int64_t kPiece = kBlock / kAtOnce;
    alignas(64) float all_factors[kBlock], all_terms[kBlock], results[kBlock];
    for (std::int64_t first = 0; first < lines; first += kAtOnce) {
      const std::int64_t count = std::min<std::int64_t>(kAtOnce, lines - first);
      double running[kAtOnce];
      std::fill_n(running, kAtOnce, starts_with_term ? 0.0 : 1.0);
      const std::int64_t piece = count == kAtOnce ? kPiece : kBlock;
      const std::int64_t pieces = (n + piece - 1) / piece;
      const auto scan_piece = [&](auto some, std::int64_t from, std::int64_t p) {
        constexpr int kSome = decltype(some)::value;
        const std::int64_t begin = (reverse ? pieces - 1 - p : p) * piece;
        const std::int64_t extent = std::min(piece, n - begin);
        for (int l = 0; l < kSome; ++l) {
          const std::int64_t at = (first + from + l) * n + begin;
          if (a.data != nullptr) widen(a.from(at), extent, all_factors + l * piece);
          if (b.data != nullptr) widen(b.from(at), extent, all_terms + l * piece);
        }
        scan_neighbours<kSome>(a.data != nullptr ? all_factors : all_terms, b.data != nullptr ? all_terms : all_factors,
                               reverse, starts_with_term && p == 0, running + from, results, piece, extent, step);
        for (int l = 0; l < kSome; ++l) {
          narrow(results + l * piece, extent, y.from((first + from + l) * n + begin));
        }
      };
      if (count == kAtOnce) {
        for (std::int64_t p = 0; p < pieces; ++p) scan_piece(std::integral_constant<int, kAtOnce>{}, 0, p);
      } else {
        for (std::int64_t line = 0; line < count; ++line) {
          for (std::int64_t p = 0; p < pieces; ++p) scan_piece(std::integral_constant<int, 1>{}, line, p);
        }
      }
    }
  });
}

/// Scans width <= kBlock columns of rows that lie `stride` apart.
void scan_columns(Input a, Input b, bool reverse, Output y, std::int64_t rows, std::int64_t stride,
                  std::int64_t width) {
  Reader a_block(a), b_block(b);
  Writer y_block(y);
  alignas(64) double running[kBlock];
  std::fill_n(running, width, b.data == nullptr ? 1.0 : 0.0);
  visit_scan(a, b, [&](auto step) {
    for (std::int64_t k = 0; k < rows; ++k) {
      const std::int64_t at = (reverse ? rows - 1 - k : k) * stride;
      float* to = y_block(at, width);
      // An undefined input is not read; other memory stands in for it.
      const float* terms = b.data == nullptr ? a_block(at, width) : b_block(at, width);
      const float* factors = a.data == nullptr ? terms : a_block(at, width);
      if (k == 0 && b.data != nullptr) {
        LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < width; ++i) running[i] = static_cast<double>(terms[i]);
      } else {
        LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < width; ++i) {
          running[i] = step(static_cast<double>(factors[i]), running[i], static_cast<double>(terms[i]));
        }
      }
      LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < width; ++i) to[i] = static_cast<float>(running[i]);
      y_block.commit();
    }
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
