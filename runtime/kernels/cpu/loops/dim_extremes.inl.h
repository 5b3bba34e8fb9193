// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/dim_reductions.inl.h"

// The extreme elements of columns, whose elements lie `stride` apart, and of lines, whose elements are neighbours.

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

using LaneFlags = decltype(Lanes{} != Lanes{});
using LaneIntegers = std::conditional_t<kLanes == 1, std::int32_t, LaneFlags>;

/// The extreme element of each lane, and where it came first if `indexed`: take() is told in ascending order.
template <Extreme which, bool indexed>
class LaneExtremes {
 public:
  [[gnu::always_inline]] explicit LaneExtremes(Lanes first) : best_(first), nan_(first) {}

  [[gnu::always_inline]] void take(Lanes x, std::int32_t at) {
    const LaneFlags beats = which == Extreme::kLargest ? x > best_ : x < best_;
    if constexpr (indexed) {
      const LaneFlags better = beats | ((x != x) & (best_ == best_));
      best_ = better ? x : best_;
      place_ = better ? LaneIntegers{} + at : place_;
    } else {
      best_ = beats ? x : best_;
      nan_ = x != x ? x : nan_;
    }
  }
  /// Joins the extremes of other lanes; only where no indices are kept.
  [[gnu::always_inline]] void take(const LaneExtremes& other) {
    take(other.best_, 0);
    nan_ = other.nan_ != other.nan_ ? other.nan_ : nan_;
  }

  [[gnu::always_inline]] void store_values(float* to) const {
    const Lanes quiet = broadcast(std::numeric_limits<float>::quiet_NaN());
    store_float(to, indexed ? best_ : nan_ != nan_ ? quiet : best_);
  }
  [[gnu::always_inline]] void store_places(std::int32_t* to) const { std::memcpy(to, &place_, sizeof(place_)); }

 private:
  Lanes best_;
  Lanes nan_;  ///< a NaN if one was taken; of no use where indexed
  LaneIntegers place_ = {};
};

template <Extreme which, bool indexed>
void extreme_columns_of(Input x, std::int64_t rows, std::int64_t stride, std::int64_t width, float* values,
                        std::int64_t* indices) {
  visit_format(x.dtype, [&]<class Format>(Format) {
    for_each_column_group(width, [&](auto vectors, std::int64_t column, auto live) {
      constexpr int kVectors = decltype(vectors)::value;
      const auto* row = elements<Format>(x) + column;
      const auto load = [&](int v) { return load_live<Format>(row + v * kLanes, live); };
      [&]<int... v>(std::integer_sequence<int, v...>) {
        LaneExtremes<which, indexed> best[] = {LaneExtremes<which, indexed>(load(v))...};
        for (std::int64_t k = 1; k < rows; ++k) {
          row += stride;
          (best[v].take(load(v), static_cast<std::int32_t>(k)), ...);
        }
        for (int i = 0; i < kVectors; ++i) {
          if (live == kLanes) {
            best[i].store_values(values + column + i * kLanes);
          } else {
            float found[kLanes];
            best[i].store_values(found);
            std::copy_n(found, std::min<std::int64_t>(live, kLanes), values + column);
          }
          if constexpr (indexed) {
            std::int32_t places[kLanes];
            best[i].store_places(places);
            std::copy_n(places, std::int64_t{live}, indices + column + i * kLanes);
          }
        }
      }
      (std::make_integer_sequence<int, kVectors>());
    });
  });
}

/// The extreme elements of each lane of n >= kLanes neighbours.
template <Extreme which, bool indexed, class Format>
[[gnu::always_inline]] inline LaneExtremes<which, indexed> lane_extremes_of_line(const typename Format::Element* x,
                                                                                 std::int64_t n) {
  using Best = LaneExtremes<which, indexed>;
  Best best(Format::load(x));
  std::int64_t i = kLanes;
  if constexpr (!indexed) {
    // As many as hide the latency of a comparison.
    constexpr int kAtOnce = 4;
    if (n >= 2 * kAtOnce * kLanes) {
      Best more[kAtOnce] = {best, best, best, best};
      for (; i + kAtOnce * kLanes <= n; i += kAtOnce * kLanes) {
        for (int k = 0; k < kAtOnce; ++k) more[k].take(Format::load(x + i + k * kLanes), 0);
      }
      for (const Best& each : more) best.take(each);
    }
  }
  for (; i < n; i += kLanes) {
    // The last ones may be looked at twice: they do not take the place of themselves.
    const std::int64_t at = std::min(i, n - kLanes);
    best.take(Format::load(x + at), static_cast<std::int32_t>(at));
  }
  return best;
}

template <Extreme which, bool indexed>
void extreme_short_lines(Input x, std::int64_t lines, std::int64_t n, float* values, std::int64_t* indices) {
  for_each_short_lines(x, lines, n, [&](std::int64_t first, std::int64_t count, const auto& columns) {
    alignas(64) float found[kShortLinesAtOnce];
    alignas(64) std::int32_t places[kShortLinesAtOnce];
    for (std::int64_t line = 0; line < kShortLinesAtOnce; line += kLanes) {
      LaneExtremes<which, indexed> best(load_float(columns[0] + line));
      for (std::int64_t k = 1; k < n; ++k) best.take(load_float(columns[k] + line), static_cast<std::int32_t>(k));
      best.store_values(found + line);
      if constexpr (indexed) best.store_places(places + line);
    }
    std::copy_n(found, count, values + first);
    if constexpr (indexed) std::copy_n(places, count, indices + first);
  });
}

template <Extreme which, bool indexed>
void extreme_lines_of(Input x, std::int64_t lines, std::int64_t n, float* values, std::int64_t* indices) {
  if (n < kShortLine) return extreme_short_lines<which, indexed>(x, lines, n, values, indices);
  visit_format(x.dtype, [&]<class Format>(Format) {
    const auto* from = elements<Format>(x);
    if constexpr (indexed) {
      for (std::int64_t line = 0; line < lines; ++line) {
        const auto best = lane_extremes_of_line<which, true, Format>(from + line * n, n);
        float found[kLanes];
        std::int32_t places[kLanes];
        best.store_values(found);
        best.store_places(places);
        std::int64_t lane = 0;
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(kLanes); ++i) {
          places[i] += i;
          const bool is_first = is_extreme(found[i], found[lane]) & (places[i] < places[lane]);
          lane = (is_more_extreme(which, found[i], found[lane]) | is_first) ? i : lane;
        }
        values[line] = found[lane];
        indices[line] = places[lane];
      }
    } else {
      const auto more_extreme = [](auto a, auto b) {
        return ((which == Extreme::kLargest ? a > b : a < b) | (a != a)) ? a : b;
      };
      for (std::int64_t first = 0; first < lines; first += 4) {
        const std::int64_t count = std::min<std::int64_t>(4, lines - first);
        alignas(64) float lanes[4][kLanes] = {};
        for (std::int64_t line = 0; line < count; ++line) {
          lane_extremes_of_line<which, false, Format>(from + (first + line) * n, n).store_values(lanes[line]);
        }
        float found[4];
        fold_lanes(lanes, found, more_extreme);
        std::copy_n(found, count, values + first);
      }
    }
  });
}

template <class F>
void visit_extreme(Extreme which, const std::int64_t* indices, F f) {
  if (which == Extreme::kLargest) {
    return indices != nullptr ? f.template operator()<Extreme::kLargest, true>()
                              : f.template operator()<Extreme::kLargest, false>();
  }
  indices != nullptr ? f.template operator()<Extreme::kSmallest, true>()
                     : f.template operator()<Extreme::kSmallest, false>();
}

void extreme_columns(Input x, Extreme which, std::int64_t rows, std::int64_t stride, std::int64_t width, float* values,
                     std::int64_t* indices) {
  visit_extreme(which, indices, [&]<Extreme extreme, bool indexed>() {
    extreme_columns_of<extreme, indexed>(x, rows, stride, width, values, indices);
  });
}

void extreme_lines(Input x, Extreme which, std::int64_t lines, std::int64_t n, float* values, std::int64_t* indices) {
  visit_extreme(which, indices, [&]<Extreme extreme, bool indexed>() {
    extreme_lines_of<extreme, indexed>(x, lines, n, values, indices);
  });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
