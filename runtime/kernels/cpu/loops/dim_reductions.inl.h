// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"

// Reductions of columns, whose elements lie `stride` apart, and of lines, whose elements are neighbours.

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// Rows whose sum is left in float32.
constexpr std::int64_t kFloatRows = 256;
/// Rows that are added to the sums of their columns at once, which are then loaded and stored once for all of them.
constexpr std::int64_t kRowsAtOnce = 4;

template <class F>
void visit_term(Term term, F f) {
  switch (term) {
    case Term::kValue:
      return f([](float x) { return x; });
    case Term::kAbsolute:
      return f([](float x) { return std::fabs(x); });
    case Term::kSquare:
      return f([](float x) { return x * x; });
  }
}

/// Calls f(count, rows..., first row) for groups of rows: blocks of up to kBlock columns of kRowsAtOnce rows, then of
/// single ones. f(std::array<const float*, count>, row, column, n).
template <class F>
void for_each_row_group(Input x, std::int64_t rows, std::int64_t stride, std::int64_t width, F f) {
  Reader readers[kRowsAtOnce] = {Reader(x), Reader(x), Reader(x), Reader(x)};
  std::int64_t row = 0;
  for (; row + kRowsAtOnce <= rows; row += kRowsAtOnce) {
    for_each_block(width, [&](std::int64_t column, std::int64_t n) {
      std::array<const float*, kRowsAtOnce> block;
      for (std::int64_t r = 0; r < kRowsAtOnce; ++r) {
        block[static_cast<std::size_t>(r)] = readers[r]((row + r) * stride + column, n);
      }
      f(block, row, column, n);
    });
  }
  for (; row < rows; ++row) {
    for_each_block(width, [&](std::int64_t column, std::int64_t n) {
      f(std::array<const float*, 1>{readers[0](row * stride + column, n)}, row, column, n);
    });
  }
}

/// Sums of several kinds over columns: add(sums of each kind, values of a column) in float32, by kFloatRows rows.
template <std::size_t kinds, class Add>
void add_columns(Input x, std::int64_t rows, std::int64_t stride, std::int64_t width, double* const (&totals)[kinds],
                 Add add) {
  alignas(64) float sums[kinds][kMostColumns];
  for (double* total : totals) std::fill_n(total, width, 0.0);
  for (std::int64_t first = 0; first < rows; first += kFloatRows) {
    for (auto& sum : sums) std::fill_n(sum, width, 0.0f);
    for_each_row_group(
        x.from(first * stride), std::min(kFloatRows, rows - first), stride, width,
        [&](const auto& block, std::int64_t, std::int64_t column, std::int64_t n) { add(sums, block, column, n); });
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      const float* sum = sums[kind];
      double* total = totals[kind];
      LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < width; ++i) total[i] += static_cast<double>(sum[i]);
    }
  }
}

void sum_columns(Input x, Term term, std::int64_t rows, std::int64_t stride, std::int64_t width, double* sums) {
  double* const totals[] = {sums};
  visit_term(term, [&](auto term_of) {
    add_columns(x, rows, stride, width, totals,
                [term_of](auto& sum, const auto& block, std::int64_t column, std::int64_t n) {
                  float* to = sum[0] + column;
                  LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) {
                    float of_group = 0;
                    for (const float* row : block) of_group += term_of(row[i]);
                    to[i] += of_group;
                  }
                });
  });
}

void deviation_columns(Input x, const float* centre, std::int64_t rows, std::int64_t stride, std::int64_t width,
                       double* sums, double* squares) {
  double* const totals[] = {sums, squares};
  add_columns(x, rows, stride, width, totals,
              [centre](auto& both, const auto& block, std::int64_t column, std::int64_t n) {
                float* sum = both[0] + column;
                float* square = both[1] + column;
                const float* from = centre + column;
                LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) {
                  float of_group = 0;
                  float squares_of_group = 0;
                  for (const float* row : block) {
                    const float d = row[i] - from[i];
                    of_group += d;
                    squares_of_group += d * d;
                  }
                  sum[i] += of_group;
                  square[i] += squares_of_group;
                }
              });
}

/// The sum over a block of term(i), in as many partial sums as hide the latency of an addition.
template <class Term>
float short_sum(std::int64_t n, Term term) {
  const std::int64_t quarter = n / 4;
  float a = 0, b = 0, c = 0, d = 0;
#pragma omp simd reduction(+ : a, b, c, d)
  for (std::int64_t i = 0; i < quarter; ++i) {
    a += term(i);
    b += term(quarter + i);
    c += term(2 * quarter + i);
    d += term(3 * quarter + i);
  }
  for (std::int64_t i = 4 * quarter; i < n; ++i) a += term(i);
  return (a + b) + (c + d);
}

/// Calls f(line, values, n) for the blocks of each line of n elements. Short lines come from one block.
template <class F>
void for_each_line_block(Input x, std::int64_t lines, std::int64_t n, F f) {
  Reader reader(x);
  if (n >= kBlock) {
    for (std::int64_t line = 0; line < lines; ++line) {
      for_each_block(
          n, [&](std::int64_t begin, std::int64_t count) { f(line, reader(line * n + begin, count), begin, count); });
    }
    return;
  }
  const std::int64_t at_once = n > 0 ? kBlock / n : lines;
  for (std::int64_t first = 0; first < lines; first += at_once) {
    const std::int64_t count = std::min(at_once, lines - first);
    const float* values = reader(first * n, count * n);
    for (std::int64_t line = 0; line < count; ++line) f(first + line, values + line * n, std::int64_t{0}, n);
  }
}

void sum_lines(Input x, Term term, std::int64_t lines, std::int64_t n, double* sums) {
  std::fill_n(sums, lines, 0.0);
  visit_term(term, [&](auto term_of) {
    for_each_line_block(x, lines, n, [&](std::int64_t line, const float* values, std::int64_t, std::int64_t count) {
      sums[line] += static_cast<double>(short_sum(count, [=](std::int64_t i) { return term_of(values[i]); }));
    });
  });
}

void deviation_lines(Input x, const float* centre, std::int64_t lines, std::int64_t n, double* sums, double* squares) {
  std::fill_n(sums, lines, 0.0);
  std::fill_n(squares, lines, 0.0);
  for_each_line_block(x, lines, n, [&](std::int64_t line, const float* values, std::int64_t, std::int64_t count) {
    const float from = centre[line];
    sums[line] += static_cast<double>(short_sum(count, [=](std::int64_t i) { return values[i] - from; }));
    squares[line] +=
        static_cast<double>(short_sum(count, [=](std::int64_t i) { return (values[i] - from) * (values[i] - from); }));
  });
}

template <Extreme which, bool indexed>
void extreme_columns_of(Input x, std::int64_t rows, std::int64_t stride, std::int64_t width, float* values,
                        std::int64_t* indices) {
  alignas(64) std::int32_t places[indexed ? kMostColumns : 1];
  if constexpr (indexed) std::fill_n(places, width, 0);
  Reader first(x);
  for_each_block(width,
                 [&](std::int64_t column, std::int64_t n) { std::copy_n(first(column, n), n, values + column); });
  for_each_row_group(x.from(stride), rows - 1, stride, width,
                     [&](const auto& block, std::int64_t row, std::int64_t column, std::int64_t n) {
                       float* best = values + column;
                       std::int32_t* place = places + (indexed ? column : 0);
                       const auto at = static_cast<std::int32_t>(row + 1);
                       LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) {
                         float best_now = best[i];
                         std::int32_t place_now = indexed ? place[i] : 0;
                         for (std::size_t r = 0; r < block.size(); ++r) {
                           const float v = block[r][i];
                           const bool better = is_more_extreme(which, v, best_now);
                           best_now = better ? v : best_now;
                           if constexpr (indexed) place_now = better ? at + static_cast<std::int32_t>(r) : place_now;
                         }
                         best[i] = best_now;
                         if constexpr (indexed) place[i] = place_now;
                       }
                     });
  if constexpr (indexed) std::copy_n(places, width, indices);
}

template <Extreme which>
float extreme_of_block(std::int64_t n, const float* values) {
  float best = values[0];
  std::uint32_t nan = 0;
  if constexpr (which == Extreme::kLargest) {
#pragma omp simd reduction(max : best) reduction(| : nan)
    for (std::int64_t i = 0; i < n; ++i) {
      best = values[i] > best ? values[i] : best;
      nan |= values[i] != values[i] ? 1u : 0u;
    }
  } else {
#pragma omp simd reduction(min : best) reduction(| : nan)
    for (std::int64_t i = 0; i < n; ++i) {
      best = values[i] < best ? values[i] : best;
      nan |= values[i] != values[i] ? 1u : 0u;
    }
  }
  return nan != 0 ? std::numeric_limits<float>::quiet_NaN() : best;
}

template <Extreme which>
void extreme_lines_of(Input x, std::int64_t lines, std::int64_t n, float* values, std::int64_t* indices) {
  for_each_line_block(x, lines, n, [&](std::int64_t line, const float* block, std::int64_t begin, std::int64_t count) {
    const float best = extreme_of_block<which>(count, block);
    if (begin > 0 && !is_more_extreme(which, best, values[line])) return;
    values[line] = best;
    if (indices == nullptr) return;
    std::int64_t i = 0;
    while (!is_extreme(block[i], best)) ++i;
    indices[line] = begin + i;
  });
}

void extreme_columns(Input x, Extreme which, std::int64_t rows, std::int64_t stride, std::int64_t width, float* values,
                     std::int64_t* indices) {
  const auto run = [&]<Extreme extreme>() {
    if (indices != nullptr) return extreme_columns_of<extreme, true>(x, rows, stride, width, values, indices);
    extreme_columns_of<extreme, false>(x, rows, stride, width, values, indices);
  };
  if (which == Extreme::kLargest) return run.template operator()<Extreme::kLargest>();
  run.template operator()<Extreme::kSmallest>();
}

void extreme_lines(Input x, Extreme which, std::int64_t lines, std::int64_t n, float* values, std::int64_t* indices) {
  if (which == Extreme::kLargest) return extreme_lines_of<Extreme::kLargest>(x, lines, n, values, indices);
  extreme_lines_of<Extreme::kSmallest>(x, lines, n, values, indices);
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
