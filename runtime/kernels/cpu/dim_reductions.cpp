// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/dim_reductions.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/functors/extreme.h"
#include "runtime/kernels/geometry/structure_checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

using checks::Middle;

/// How [outer, n, inner] is cut into pieces, by its extents alone, so that the order of additions does not depend on
/// the number of threads. A loop reduces a piece to a row of partial results: a line where inner is 1, else columns.
struct Cut {
  explicit Cut(const Middle& x) : extents(x), tiles((x.inner + kMostColumns - 1) / kMostColumns) {
    // Where few results have many elements each, the middle is cut too, into work for up to kMostItems threads.
    constexpr std::int64_t kMostItems = 64;
    constexpr std::int64_t kItem = 65536;
    const std::int64_t wanted = std::clamp<std::int64_t>(x.outer * x.n * x.inner / kItem, 1, kMostItems);
    const std::int64_t cuts = (wanted + x.outer * tiles - 1) / std::max<std::int64_t>(x.outer * tiles, 1);
    const std::int64_t fewest = std::max<std::int64_t>(256, 4096 / std::max<std::int64_t>(x.inner, 1));
    piece = std::max((x.n + cuts - 1) / std::max<std::int64_t>(cuts, 1), fewest);
    pieces = std::max<std::int64_t>((x.n + piece - 1) / piece, 1);
  }

  Middle extents;
  std::int64_t tiles;   ///< of at most kMostColumns columns
  std::int64_t piece;   ///< rows
  std::int64_t pieces;  ///< of n

  std::int64_t rows(std::int64_t p) const { return std::min(piece, extents.n - p * piece); }
  /// The element where piece p of `o` begins.
  std::int64_t begin(std::int64_t o, std::int64_t p) const { return (o * extents.n + p * piece) * extents.inner; }
};

/// Calls f(o, p, column, width) for the tiles of all pieces, on several threads.
template <class F>
void for_each_piece(const Cut& cut, F f) {
  const std::int64_t inner = cut.extents.inner;
  const std::int64_t elements = std::min(cut.piece, cut.extents.n) * std::min(inner, kMostColumns);
  parallel_rows(cut.extents.outer * cut.pieces * cut.tiles, elements, [&](std::int64_t first, std::int64_t n) {
    std::int64_t tile = first % cut.tiles;
    std::int64_t p = first / cut.tiles % cut.pieces;
    std::int64_t o = first / cut.tiles / cut.pieces;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t column = tile * kMostColumns;
      f(o, p, column, std::min(kMostColumns, inner - column));
      if (++tile < cut.tiles) continue;
      tile = 0;
      if (++p < cut.pieces) continue;
      p = 0;
      ++o;
    }
  });
}

/// Copies of narrow rows that make one row of a loop.
std::int64_t copies_of(std::int64_t inner, std::int64_t rows) {
  constexpr std::int64_t kEnough = 128;
  constexpr std::int64_t kFewRows = 16;
  if (inner >= kEnough || (inner >= kEnough / 8 && rows < kFewRows)) return 1;
  return std::clamp<std::int64_t>(rows, 1, 4 * kEnough / inner);
}

/// Sums of one or two kinds: loops that add up a piece as lines and as columns.
template <std::size_t kinds, class Lines, class Columns>
std::array<std::vector<double>, kinds> sums_of(const Middle& x, Lines lines, Columns columns) {
  const Cut cut(x);
  const std::int64_t results = x.outer * x.inner;
  std::array<std::vector<double>, kinds> partial;
  for (auto& each : partial) each.assign(static_cast<std::size_t>(results * cut.pieces), 0.0);
  const auto at = [&](std::int64_t result) {
    std::array<double*, kinds> pointers;
    for (std::size_t kind = 0; kind < kinds; ++kind) pointers[kind] = partial[kind].data() + result;
    return pointers;
  };
  if (results == 0 || x.n == 0) return partial;
  if (x.inner == 1 && cut.pieces == 1) {
    parallel_rows(x.outer, x.n,
                  [&](std::int64_t first, std::int64_t n) { lines(first * x.n, first, n, x.n, at(first)); });
    return partial;
  }
  for_each_piece(cut, [&](std::int64_t o, std::int64_t p, std::int64_t column, std::int64_t width) {
    const std::array<double*, kinds> to = at((o * cut.pieces + p) * x.inner + column);
    if (x.inner == 1) return lines(cut.begin(o, p), o, 1, cut.rows(p), to);
    columns(cut.begin(o, p) + column, o * x.inner + column, cut.rows(p), x.inner, width, to);
  });
  if (cut.pieces == 1) return partial;
  std::array<std::vector<double>, kinds> total;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    total[kind].assign(static_cast<std::size_t>(results), 0.0);
    for (std::int64_t o = 0; o < x.outer; ++o) {
      for (std::int64_t p = 0; p < cut.pieces; ++p) {
        for (std::int64_t i = 0; i < x.inner; ++i) {
          total[kind][static_cast<std::size_t>(o * x.inner + i)] +=
              partial[kind][static_cast<std::size_t>((o * cut.pieces + p) * x.inner + i)];
        }
      }
    }
  }
  return total;
}

/// Adds `copies` copies of `inner` sums up into the first.
void fold_sums(const double* wide, std::int64_t copies, std::int64_t inner, double* sums) {
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    for (std::int64_t i = 0; i < inner; ++i) sums[i] += wide[copy * inner + i];
  }
}

/// sums [width] of columns that begin at element `begin`.
void sum_columns(const Tensor& x, Term term, std::int64_t begin, std::int64_t rows, std::int64_t inner,
                 std::int64_t width, double* sums) {
  const std::int64_t copies = copies_of(inner, rows);
  if (copies == 1) return loops().sum_columns(input(x).from(begin), term, rows, inner, width, sums);
  std::fill_n(sums, width, 0.0);
  double wide[kMostColumns];
  const std::int64_t whole = rows / copies;
  loops().sum_columns(input(x).from(begin), term, whole, copies * inner, copies * inner, wide);
  fold_sums(wide, copies, inner, sums);
  const std::int64_t rest = rows - whole * copies;
  if (rest == 0) return;
  loops().sum_columns(input(x).from(begin + whole * copies * inner), term, 1, rest * inner, rest * inner, wide);
  fold_sums(wide, rest, inner, sums);
}

std::vector<double> sums_of(const Tensor& x, const Middle& extents, Term term) {
  return sums_of<1>(
      extents,
      [&](std::int64_t begin, std::int64_t, std::int64_t lines, std::int64_t n, const auto& to) {
        loops().sum_lines(input(x).from(begin), term, lines, n, to[0]);
      },
      [&](std::int64_t begin, std::int64_t, std::int64_t rows, std::int64_t inner, std::int64_t width, const auto& to) {
        sum_columns(x, term, begin, rows, inner, width, to[0]);
      })[0];
}

/// Stores doubles, by way of float32, in any dtype that the loops write.
template <class F>
void store_values(std::int64_t n, const Tensor& out, F value_at) {
  parallel_elements(n, [&](std::int64_t begin, std::int64_t count) {
    constexpr std::int64_t kAtOnce = 512;
    float values[kAtOnce];
    for (std::int64_t first = begin; first < begin + count; first += kAtOnce) {
      const std::int64_t some = std::min(kAtOnce, begin + count - first);
      for (std::int64_t i = 0; i < some; ++i) {
        values[i] = static_cast<float>(value_at(static_cast<std::size_t>(first + i)));
      }
      loops().convert({values, DType::kFloat32}, output(out).from(first), some);
    }
  });
}

/// sum_dim() of a middle that is in one piece: sums are stored as soon as they are there.
void sum_whole(const Tensor& x, Term term, double factor, const Tensor& out, const Cut& cut) {
  const Middle& extents = cut.extents;
  if (extents.inner > 1) {
    return for_each_piece(cut, [&](std::int64_t o, std::int64_t, std::int64_t column, std::int64_t width) {
      double sums[kMostColumns];
      sum_columns(x, term, cut.begin(o, 0) + column, extents.n, extents.inner, width, sums);
      loops().scale_sums(sums, factor, output(out).from(o * extents.inner + column), width);
    });
  }
  parallel_rows(extents.outer, extents.n, [&](std::int64_t begin, std::int64_t lines) {
    constexpr std::int64_t kLines = 512;
    double sums[kLines];
    for (std::int64_t first = begin; first < begin + lines; first += kLines) {
      const std::int64_t some = std::min(kLines, begin + lines - first);
      loops().sum_lines(input(x).from(first * extents.n), term, some, extents.n, sums);
      loops().scale_sums(sums, factor, output(out).from(first), some);
    }
  });
}

void sum_dim(const Tensor& x, Term term, double factor, const Tensor& out) {
  const Middle extents = checks::sum_dim(x, out);
  if (!is_fast(x) || !is_fast(out)) return reference::kDimReductions.sum_dim(x, term, factor, out);
  const Cut cut(extents);
  if (cut.pieces == 1 && x.numel() > 0) return sum_whole(x, term, factor, out, cut);
  const std::vector<double> sums = sums_of(x, extents, term);
  loops().scale_sums(sums.data(), factor, output(out), out.numel());
}

void variance_dim(const Tensor& x, double divisor, const Tensor& variance) {
  const Middle extents = checks::variance_dim(x, variance);
  if (!is_fast(x) || !is_fast(variance)) return reference::kDimReductions.variance_dim(x, divisor, variance);
  const auto n = static_cast<double>(extents.n);
  const std::vector<double> sums = sums_of(x, extents, Term::kValue);
  // Near the mean; what it is off by is taken out of the squares again.
  std::vector<float> centre(sums.size());
  std::ranges::transform(sums, centre.begin(), [n](double sum) { return static_cast<float>(sum / n); });
  const auto deviations = sums_of<2>(
      extents,
      [&](std::int64_t begin, std::int64_t result, std::int64_t lines, std::int64_t length, const auto& to) {
        loops().deviation_lines(input(x).from(begin), centre.data() + result, lines, length, to[0], to[1]);
      },
      [&](std::int64_t begin, std::int64_t result, std::int64_t rows, std::int64_t inner, std::int64_t width,
          const auto& to) {
        const std::int64_t copies = copies_of(inner, rows);
        const float* of_columns = centre.data() + result;
        if (copies == 1) {
          return loops().deviation_columns(input(x).from(begin), of_columns, rows, inner, width, to[0], to[1]);
        }
        float repeated[kMostColumns];
        for (std::int64_t i = 0; i < copies * inner; ++i) repeated[i] = of_columns[i % inner];
        double wide[2][kMostColumns];
        const auto add = [&](std::int64_t from, std::int64_t wide_rows, std::int64_t count) {
          loops().deviation_columns(input(x).from(from), repeated, wide_rows, count * inner, count * inner, wide[0],
                                    wide[1]);
          for (std::size_t kind = 0; kind < 2; ++kind) fold_sums(wide[kind], count, inner, to[kind]);
        };
        const std::int64_t whole = rows / copies;
        add(begin, whole, copies);
        if (whole * copies < rows) add(begin + whole * copies * inner, 1, rows - whole * copies);
      });
  store_values(variance.numel(), variance, [&, divisor](std::size_t i) {
    return divisor > 0 ? (deviations[1][i] - deviations[0][i] * deviations[0][i] / n) / divisor : NAN;
  });
}

/// Extremes of pieces and where they are.
struct Extremes {
  std::vector<float> values;
  std::vector<std::int64_t> indices;
};

/// extreme_dim() of a middle that is in several pieces.
void extreme_of_pieces(const Tensor& x, Extreme which, const Tensor& values, const Tensor& indices, const Cut& cut) {
  const Middle& extents = cut.extents;
  const std::int64_t results = extents.outer * extents.inner;
  Extremes found{std::vector<float>(static_cast<std::size_t>(results * cut.pieces)), {}};
  if (indices.defined()) found.indices.resize(found.values.size());
  for_each_piece(cut, [&](std::int64_t o, std::int64_t p, std::int64_t column, std::int64_t width) {
    const std::int64_t to = (o * cut.pieces + p) * extents.inner + column;
    const Input from = input(x).from(cut.begin(o, p) + column);
    float* values_to = found.values.data() + to;
    std::int64_t* indices_to = indices.defined() ? found.indices.data() + to : nullptr;
    if (extents.inner == 1) return loops().extreme_lines(from, which, 1, cut.rows(p), values_to, indices_to);
    loops().extreme_columns(from, which, cut.rows(p), extents.inner, width, values_to, indices_to);
  });
  // Pieces in order, so that the first one of equals stays.
  for (std::int64_t o = 0; o < extents.outer; ++o) {
    for (std::int64_t p = 0; p < cut.pieces; ++p) {
      for (std::int64_t i = 0; i < extents.inner; ++i) {
        const auto to = static_cast<std::size_t>(o * extents.inner + i);
        const auto from = static_cast<std::size_t>((o * cut.pieces + p) * extents.inner + i);
        if (p > 0 && !is_more_extreme(which, found.values[from], found.values[to])) continue;
        found.values[to] = found.values[from];
        if (indices.defined()) found.indices[to] = found.indices[from] + p * cut.piece;
      }
    }
  }
  if (values.defined()) loops().convert({found.values.data(), DType::kFloat32}, output(values), results);
  if (indices.defined()) std::copy_n(found.indices.data(), results, static_cast<std::int64_t*>(indices.data()));
}

void extreme_dim(const Tensor& x, Extreme which, const Tensor& values, const Tensor& indices) {
  const Middle extents = checks::extreme_dim(x, values, indices);
  if (!is_fast(x)) return reference::kDimReductions.extreme_dim(x, which, values, indices);
  if (x.numel() == 0) return;
  const Cut cut(extents);
  if (cut.pieces > 1) return extreme_of_pieces(x, which, values, indices, cut);
  const auto indices_at = [&](std::int64_t result) {
    return indices.defined() ? static_cast<std::int64_t*>(indices.data()) + result : nullptr;
  };
  // float32 is found where it belongs.
  const bool in_place = values.defined() && values.dtype() == DType::kFloat32;
  const auto place = [&](float* found, std::int64_t result) {
    return in_place ? static_cast<float*>(values.data()) + result : found;
  };
  const auto finish = [&](const float* found, std::int64_t result, std::int64_t count) {
    if (!values.defined() || in_place) return;
    loops().convert({found, DType::kFloat32}, output(values).from(result), count);
  };
  if (extents.inner > 1) {
    return for_each_piece(cut, [&](std::int64_t o, std::int64_t, std::int64_t column, std::int64_t width) {
      float found[kMostColumns];
      const std::int64_t result = o * extents.inner + column;
      loops().extreme_columns(input(x).from(cut.begin(o, 0) + column), which, extents.n, extents.inner, width,
                              place(found, result), indices_at(result));
      finish(found, result, width);
    });
  }
  parallel_rows(extents.outer, extents.n, [&](std::int64_t begin, std::int64_t lines) {
    constexpr std::int64_t kLines = 512;
    float found[kLines];
    for (std::int64_t first = begin; first < begin + lines; first += kLines) {
      const std::int64_t some = std::min(kLines, begin + lines - first);
      loops().extreme_lines(input(x).from(first * extents.n), which, some, extents.n, place(found, first),
                            indices_at(first));
      finish(found, first, some);
    }
  });
}

template <class T>
void shares_of(const Tensor& x, const Tensor& extremes, const Tensor& shares, const Middle& extents) {
  const auto* values = static_cast<const T*>(x.data());
  const auto* of = static_cast<const T*>(extremes.data());
  auto* to = static_cast<T*>(shares.data());
  const auto equal = [](T a, T b) { return is_extreme(static_cast<float>(a), static_cast<float>(b)); };
  parallel_rows(extents.outer, extents.n * extents.inner, [&](std::int64_t first, std::int64_t count) {
    std::vector<double> counts(static_cast<std::size_t>(extents.inner));
    for (std::int64_t o = first; o < first + count; ++o) {
      std::ranges::fill(counts, 0.0);
      const std::int64_t begin = o * extents.n * extents.inner;
      const T* of_slice = of + o * extents.inner;
      for (std::int64_t k = 0; k < extents.n; ++k) {
        const T* row = values + begin + k * extents.inner;
        for (std::int64_t i = 0; i < extents.inner; ++i) {
          counts[static_cast<std::size_t>(i)] += equal(row[i], of_slice[i]) ? 1.0 : 0.0;
        }
      }
      for (std::int64_t k = 0; k < extents.n; ++k) {
        const std::int64_t row = begin + k * extents.inner;
        for (std::int64_t i = 0; i < extents.inner; ++i) {
          const float share = equal(values[row + i], of_slice[i])
                                  ? static_cast<float>(1.0 / counts[static_cast<std::size_t>(i)])
                                  : 0.0f;
          to[row + i] = static_cast<T>(share);
        }
      }
    }
  });
}

void extreme_shares(const Tensor& x, const Tensor& extremes, const Tensor& shares) {
  const Middle extents = checks::extreme_shares(x, extremes, shares);
  if (x.dtype() == DType::kFloat32) return shares_of<float>(x, extremes, shares, extents);
  if (x.dtype() == DType::kFloat16) return shares_of<Half>(x, extremes, shares, extents);
  if (x.dtype() == DType::kBFloat16) return shares_of<BFloat16>(x, extremes, shares, extents);
  reference::kDimReductions.extreme_shares(x, extremes, shares);
}

}  // namespace

const DimReductions kDimReductions{
    .sum_dim = sum_dim, .variance_dim = variance_dim, .extreme_dim = extreme_dim, .extreme_shares = extreme_shares};

}  // namespace lockstep::kernels::cpu
