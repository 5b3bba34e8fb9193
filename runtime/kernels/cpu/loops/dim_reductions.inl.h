// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"
#include "runtime/kernels/cpu/loops/transpose.inl.h"

// Reductions of columns, whose elements lie `stride` apart, and of lines, whose elements are neighbours.

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// Rows whose sum is left in float32.
constexpr std::int64_t kFloatRows = 256;

template <class F>
void visit_term(Term term, F f) {
  switch (term) {
    case Term::kValue:
      return f([](auto x) { return x; });
    case Term::kAbsolute:
      return f([](auto x) { return x < 0 ? -x : x; });
    case Term::kSquare:
      return f([](auto x) { return x * x; });
  }
}

/// Calls f(vectors, column, live) for groups of columns that stay in registers: `vectors` vectors, each with `live`
/// columns. Of several vectors the compiler knows that they are whole, or it would keep them in memory. The last group
/// may repeat columns of the one before it.
template <class F>
void for_each_column_group(std::int64_t width, F f) {
  // As many as hide the latency of an addition.
  constexpr int kMany = 8;
  constexpr std::integral_constant<std::int64_t, kLanes> kWhole;
  std::int64_t column = 0;
  for (; column + kMany * kLanes <= width; column += kMany * kLanes) {
    f(std::integral_constant<int, kMany>{}, column, kWhole);
  }
  for (; column + kLanes <= width; column += kLanes) f(std::integral_constant<int, 1>{}, column, kLanes);
  if (column == width) return;
  f(std::integral_constant<int, 1>{}, std::max<std::int64_t>(width - kLanes, 0), std::min(width, kLanes));
}

template <class Format>
[[gnu::always_inline]] inline Lanes load_live(const typename Format::Element* from, std::int64_t live) {
  if constexpr (kLanes > 1) {
    if (live < kLanes) return load_some<Format>(from, live);
  }
  return Format::load(from);
}

/// Sums of several kinds over columns, in float32 by kFloatRows rows: add(x, column, sums of each kind).
template <int kinds, class Add>
void add_columns(Input x, std::int64_t rows, std::int64_t stride, std::int64_t width, double* const (&totals)[kinds],
                 Add add) {
  visit_format(x.dtype, [&]<class Format>(Format) {
    for_each_column_group(width, [&](auto vectors, std::int64_t column, auto live) {
      constexpr int kVectors = decltype(vectors)::value;
      const auto* row = elements<Format>(x) + column;
      for (std::int64_t first = 0; first < rows; first += kFloatRows) {
        Lanes sums[kVectors][kinds] = {};
        for (std::int64_t n = std::min(kFloatRows, rows - first); n > 0; --n, row += stride) {
          for (int v = 0; v < kVectors; ++v) {
            add(load_live<Format>(row + v * kLanes, live), column + v * kLanes, sums[v]);
          }
        }
        for (int v = 0; v < kVectors; ++v) {
          for (int kind = 0; kind < kinds; ++kind) {
            alignas(64) float part[kLanes];
            store_float(part, sums[v][kind]);
            double* total = totals[kind] + column + v * kLanes;
            const std::int64_t columns = live;
            if (first == 0) std::fill_n(total, columns, 0.0);
            LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < columns; ++i) total[i] += static_cast<double>(part[i]);
          }
        }
      }
    });
  });
}

void sum_columns(Input x, Term term, std::int64_t rows, std::int64_t stride, std::int64_t width, double* sums) {
  double* const totals[] = {sums};
  visit_term(term, [&](auto term_of) {
    add_columns(x, rows, stride, width, totals,
                [term_of](Lanes values, std::int64_t, Lanes* sum) { sum[0] += term_of(values); });
  });
}

void deviation_columns(Input x, const float* centre, std::int64_t rows, std::int64_t stride, std::int64_t width,
                       double* sums, double* squares) {
  double* const totals[] = {sums, squares};
  alignas(64) float padded[kLanes] = {};
  if (width < kLanes) centre = std::copy_n(centre, width, padded) - width;
  add_columns(x, rows, stride, width, totals, [centre](Lanes values, std::int64_t column, Lanes* both) {
    const Lanes d = values - load_float(centre + column);
    both[0] += d;
    both[1] += d * d;
  });
}

/// Shorter lines are worked on as columns, many at a time.
constexpr std::int64_t kShortLine = 32;
constexpr std::int64_t kShortLinesAtOnce = kBlock / kShortLine;

/// columns [n, kShortLinesAtOnce] = lines [kShortLinesAtOnce, n] transposed.
void transpose_short_lines(const float* lines, std::int64_t n, float (*columns)[kShortLinesAtOnce]) {
  constexpr int kSide = Quarter<float>::kCount;
  if (n < kSide) {
    for (std::int64_t k = 0; k < n; ++k) {
      for (std::int64_t line = 0; line < kShortLinesAtOnce; ++line) columns[k][line] = lines[line * n + k];
    }
    return;
  }
  // The last tile may repeat columns of the one before it.
  for (std::int64_t next = 0; next < n; next += kSide) {
    const std::int64_t k = std::min(next, n - kSide);
    for (std::int64_t line = 0; line < kShortLinesAtOnce; line += kSide) {
      Quarter<float>::Vector tile[kSide];
      for (int i = 0; i < kSide; ++i) std::memcpy(&tile[i], lines + (line + i) * n + k, sizeof(tile[i]));
      transpose_vectors<float>(tile);
      for (int i = 0; i < kSide; ++i) std::memcpy(columns[k + i] + line, &tile[i], sizeof(tile[i]));
    }
  }
}

/// Calls f(first line, count, columns) for groups of up to kShortLinesAtOnce lines; columns beyond `count` are zero.
template <class F>
void for_each_short_lines(Input x, std::int64_t lines, std::int64_t n, F f) {
  Reader reader(x);
  alignas(64) float columns[kShortLine][kShortLinesAtOnce];
  for (std::int64_t first = 0; first < lines; first += kShortLinesAtOnce) {
    const std::int64_t count = std::min(kShortLinesAtOnce, lines - first);
    const float* values = reader(first * n, count * n);
    alignas(64) float padded[kBlock];
    if (count < kShortLinesAtOnce) {
      std::fill(std::copy_n(values, count * n, padded), padded + kShortLinesAtOnce * n, 0.0f);
      values = padded;
    }
    transpose_short_lines(values, n, columns);
    f(first, count, columns);
  }
}

/// Partial sums of term(x) over n neighbours.
template <class Format, class Term>
[[gnu::always_inline]] inline Lanes partial_sums_of_line(const typename Format::Element* x, std::int64_t n, Term term) {
  // As many as hide the latency of an addition.
  constexpr int kSums = 4;
  Lanes sums[kSums] = {};
  std::int64_t i = 0;
  for (; i + kSums * kLanes <= n; i += kSums * kLanes) {
    for (int s = 0; s < kSums; ++s) sums[s] += term(Format::load(x + i + s * kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) sums[0] += term(Format::load(x + i));
  if (i < n) {
    float rest[kLanes];
    store_float(rest, term(load_some<Format>(x + i, n - i)));
    std::fill(rest + (n - i), rest + kLanes, 0.0f);
    sums[1] += load_float(rest);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// Combines the lanes of each of four vectors into one number.
template <class Combine>
[[gnu::always_inline]] inline void fold_lanes(const float (&vectors)[4][kLanes], float (&results)[4], Combine combine) {
  using Four = Quarter<float>::Vector;
  if constexpr (kLanes == 1) {
    for (int v = 0; v < 4; ++v) results[v] = vectors[v][0];
  } else {
    Four folded[4];
    for (int v = 0; v < 4; ++v) {
      std::memcpy(&folded[v], vectors[v], sizeof(Four));
      for (std::int64_t i = 4; i < kLanes; i += 4) {
        Four more;
        std::memcpy(&more, vectors[v] + i, sizeof(more));
        folded[v] = combine(folded[v], more);
      }
    }
    transpose_vectors<float>(folded);
    const Four result = combine(combine(folded[0], folded[1]), combine(folded[2], folded[3]));
    std::memcpy(results, &result, sizeof(result));
  }
}

/// totals[line] = the sum of term_of_line(line)(x) over each line.
template <class TermOfLine>
void add_lines(Input x, std::int64_t lines, std::int64_t n, double* totals, TermOfLine term_of_line) {
  // The partial sums of a line stay in float32 for so many elements.
  constexpr std::int64_t kFloatElements = 32768;
  if (n < kShortLine) {
    for_each_short_lines(x, lines, n, [&](std::int64_t first, std::int64_t count, const auto& columns) {
      float sums[kShortLinesAtOnce] = {};
      for (std::int64_t k = 0; k < n; ++k) {
        LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < count; ++i) sums[i] += term_of_line(first + i)(columns[k][i]);
      }
      for (std::int64_t i = 0; i < count; ++i) totals[first + i] = static_cast<double>(sums[i]);
    });
    return;
  }
  visit_format(x.dtype, [&]<class Format>(Format) {
    for (std::int64_t first = 0; first < lines; first += 4) {
      const std::int64_t count = std::min<std::int64_t>(4, lines - first);
      double sums[4] = {};
      for (std::int64_t begin = 0; begin < n; begin += kFloatElements) {
        alignas(64) float partial[4][kLanes] = {};
        for (std::int64_t line = 0; line < count; ++line) {
          const auto* from = elements<Format>(x) + (first + line) * n + begin;
          store_float(partial[line], partial_sums_of_line<Format>(from, std::min(kFloatElements, n - begin),
                                                                  term_of_line(first + line)));
        }
        float of_piece[4];
        fold_lanes(partial, of_piece, [](auto a, auto b) { return a + b; });
        for (int line = 0; line < 4; ++line) sums[line] += static_cast<double>(of_piece[line]);
      }
      std::copy_n(sums, count, totals + first);
    }
  });
}

void sum_lines(Input x, Term term, std::int64_t lines, std::int64_t n, double* sums) {
  visit_term(term, [&](auto term_of) { add_lines(x, lines, n, sums, [=](std::int64_t) { return term_of; }); });
}

void deviation_lines(Input x, const float* centre, std::int64_t lines, std::int64_t n, double* sums, double* squares) {
  add_lines(x, lines, n, sums, [=](std::int64_t line) { return [c = centre[line]](auto v) { return v - c; }; });
  add_lines(x, lines, n, squares,
            [=](std::int64_t line) { return [c = centre[line]](auto v) { return (v - c) * (v - c); }; });
}

void scale_sums(const double* sums, double factor, Output out, std::int64_t n) {
  Writer writer(out);
  for_each_block(n, [&](std::int64_t begin, std::int64_t count) {
    float* to = writer(begin, count);
    const double* from = sums + begin;
    LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(factor * from[i]);
    writer.commit();
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
