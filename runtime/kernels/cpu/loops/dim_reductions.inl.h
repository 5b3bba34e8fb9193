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
      return f([](auto x) { return x; });
    case Term::kAbsolute:
      return f([](auto x) { return x < 0 ? -x : x; });
    case Term::kSquare:
      return f([](auto x) { return x * x; });
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

/// Shorter lines are left to scalar sums, several of which the processor works on at once.
constexpr std::int64_t kShortLine = 32;

/// Partial sums of a line, as many as hide the latency of an addition. They are added up where the line ends, because
/// that takes as long as hundreds of elements.
class LineSum {
 public:
  /// Adds term(x) of n neighbours.
  template <class Term>
  void add(const float* x, std::int64_t n, Term term) {
    Lanes sums[kSums];
    for (int s = 0; s < kSums; ++s) sums[s] = load_float(parts_ + s * kLanes);
    std::int64_t i = 0;
    for (; i + kSums * kLanes <= n; i += kSums * kLanes) {
      for (int s = 0; s < kSums; ++s) sums[s] += term(load_float(x + i + s * kLanes));
    }
    for (int s = 0; s < kSums; ++s) store_float(parts_ + s * kLanes, sums[s]);
    for (std::int64_t s = 0; i < n; ++i, ++s) parts_[s] += term(x[i]);
  }
  /// Their sum; the next line begins.
  double take() {
    double sum = 0;
    for (float& part : parts_) sum += static_cast<double>(std::exchange(part, 0.0f));
    return sum;
  }

 private:
  static constexpr int kSums = 4;
  alignas(64) float parts_[kSums * kLanes] = {};
};

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

/// totals[line] = the sum of term_of_line(line)(x) over each line.
template <class Term>
void add_lines(Input x, std::int64_t lines, std::int64_t n, double* totals, Term term_of_line) {
  // The partial sums of a line stay in float32 for so many elements.
  constexpr std::int64_t kFloatElements = 32768;
  LineSum sum;
  if (n == 0) std::fill_n(totals, lines, 0.0);
  for_each_line_block(x, lines, n, [&](std::int64_t line, const float* values, std::int64_t begin, std::int64_t count) {
    const auto term = term_of_line(line);
    if (n < kShortLine) {
      float total = 0;
      for (std::int64_t i = 0; i < n; ++i) total += term(values[i]);
      totals[line] = static_cast<double>(total);
      return;
    }
    sum.add(values, count, term);
    if (begin == 0) totals[line] = 0;
    if ((begin + count) % kFloatElements == 0 || begin + count == n) totals[line] += sum.take();
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

template <Extreme which>
[[gnu::always_inline]] inline void take_more_extreme(float v, std::int32_t at, float& best, std::int32_t& place) {
  const bool better = is_more_extreme(which, v, best);
  best = better ? v : best;
  place = better ? at : place;
}

template <Extreme which, bool indexed>
void extreme_columns_of(Input x, std::int64_t rows, std::int64_t stride, std::int64_t width, float* values,
                        std::int64_t* indices) {
  alignas(64) std::int32_t places[indexed ? kMostColumns : 1];
  if constexpr (indexed) std::fill_n(places, width, 0);
  Reader first(x);
  for_each_block(width,
                 [&](std::int64_t column, std::int64_t n) { std::copy_n(first(column, n), n, values + column); });
  for_each_row_group(
      x.from(stride), rows - 1, stride, width,
      [&](const auto& block, std::int64_t row, std::int64_t column, std::int64_t n) {
        float* best = values + column;
        std::int32_t* place = places + (indexed ? column : 0);
        const auto at = static_cast<std::int32_t>(row + 1);
        LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) {
          float best_now = best[i];
          std::int32_t place_now = indexed ? place[i] : 0;
          // Written out: with a loop inside, this one would not become vector code.
          [&]<std::size_t... r>(std::index_sequence<r...>) {
            (take_more_extreme<which>(block[r][i], at + static_cast<std::int32_t>(r), best_now, place_now), ...);
          }
          (std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(block)>>>());
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
    if (n < kShortLine) {
      float short_best = block[0];
      std::int32_t place = 0;
      for (std::int32_t i = 1; i < static_cast<std::int32_t>(n); ++i) {
        take_more_extreme<which>(block[i], i, short_best, place);
      }
      values[line] = short_best;
      if (indices != nullptr) indices[line] = place;
      return;
    }
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
