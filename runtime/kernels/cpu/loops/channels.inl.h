// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// How the loops walk over [rows, channels]: in tiles of `width` consecutive elements. A tile is one row, or, of narrow
/// rows, so many that it fills whole vectors and is long enough to be worth a loop; parameters are repeated alike.
struct Tiling {
  static constexpr std::int64_t kEnough = 512;
  static constexpr std::int64_t kMaxRepeatedWidth = 1024;

  std::int64_t total;
  std::int64_t channels;
  std::int64_t width;

  Tiling(std::int64_t rows, std::int64_t row_channels)
      : total(rows * row_channels), channels(row_channels), width(row_channels * copies(row_channels)) {}

  static std::int64_t copies(std::int64_t channels) {
    constexpr std::int64_t kLanesOfWidestVector = 16;
    if (channels >= kEnough) return 1;
    const std::int64_t whole_vectors = kLanesOfWidestVector / std::gcd(channels, kLanesOfWidestVector);
    const std::int64_t unit = channels * whole_vectors <= kMaxRepeatedWidth ? whole_vectors : 1;
    return unit * std::max<std::int64_t>(1, kEnough / (channels * unit));
  }
};

/// A value for each channel, repeated over a tile.
class TiledParameter {
 public:
  TiledParameter(const float* values, const Tiling& tiling) : data_(values) {
    if (tiling.width == tiling.channels) return;
    for (std::int64_t at = 0; at < tiling.width; at += tiling.channels) {
      for (std::int64_t c = 0; c < tiling.channels; ++c) repeated_[at + c] = values[c];
    }
    data_ = repeated_;
  }
  TiledParameter(const TiledParameter&) = delete;
  TiledParameter& operator=(const TiledParameter&) = delete;

  const float* data() const { return data_; }
  Source<FloatLanes> at(std::int64_t column) const { return {data_ + column}; }

 private:
  const float* data_;
  alignas(64) float repeated_[Tiling::kMaxRepeatedWidth];
};

/// A sum for each channel, kept for each element of a tile until fold().
class TiledSum {
 public:
  TiledSum(float* sums, const Tiling& tiling) : tiling_(tiling), sums_(sums) {
    data_ = tiling.width == tiling.channels ? sums : repeated_;
    std::fill_n(data_, tiling.width, 0.0f);
  }
  TiledSum(const TiledSum&) = delete;
  TiledSum& operator=(const TiledSum&) = delete;

  float* data() { return data_; }
  void fold() {
    if (data_ == sums_) return;
    std::int64_t width = tiling_.width;
    // Adds halves while the number of copies is even: that is vector code, and a pairwise sum keeps more digits.
    while (width % (2 * tiling_.channels) == 0) {
      width /= 2;
      add_to(repeated_, repeated_ + width, width);
    }
    for (std::int64_t at = tiling_.channels; at < width; at += tiling_.channels) {
      add_to(repeated_, repeated_ + at, tiling_.channels);
    }
    std::copy_n(repeated_, tiling_.channels, sums_);
  }

 private:
  static void add_to(float* sums, const float* more, std::int64_t n) {
    LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) sums[i] += more[i];
  }

  Tiling tiling_;
  float* sums_;
  float* data_;
  alignas(64) float repeated_[Tiling::kMaxRepeatedWidth];
};

/// Calls f(begin, column, n) for blocks that cover all elements: n of them from `begin` on, which is at `column` of its
/// tile.
template <class F>
void for_each_tile(const Tiling& tiling, F f) {
  for (std::int64_t tile = 0; tile < tiling.total; tile += tiling.width) {
    for_each_block(std::min(tiling.width, tiling.total - tile),
                   [&](std::int64_t column, std::int64_t n) { f(tile + column, column, n); });
  }
}

/// As for_each_tile, with several tiles at once where there are as many: calls f(count, begin, column, n) with the
/// number of tiles as a constant. A sum over tiles is then loaded and stored once for all of them.
template <class F>
void for_each_tile_group(const Tiling& tiling, F f) {
  constexpr std::integral_constant<int, 4> kGroup;
  std::int64_t tile = 0;
  for (; tile + kGroup * tiling.width <= tiling.total; tile += kGroup * tiling.width) {
    for_each_block(tiling.width, [&](std::int64_t column, std::int64_t n) { f(kGroup, tile + column, column, n); });
  }
  for (; tile < tiling.total; tile += tiling.width) {
    for_each_block(std::min(tiling.width, tiling.total - tile), [&](std::int64_t column, std::int64_t n) {
      f(std::integral_constant<int, 1>(), tile + column, column, n);
    });
  }
}

/// Reads the same columns of up to four tiles.
class TileGroupReader {
 public:
  TileGroupReader(Input in, const Tiling& tiling)
      : width_(tiling.width), readers_{Reader(in), Reader(in), Reader(in), Reader(in)} {}

  template <int Count>
  std::array<const float*, Count> read(std::int64_t begin, std::int64_t n) {
    std::array<const float*, Count> tiles;
    for (std::size_t t = 0; t < Count; ++t) {
      tiles[t] = readers_[t](begin + static_cast<std::int64_t>(t) * width_, n);
    }
    return tiles;
  }

 private:
  std::int64_t width_;
  Reader readers_[4];
};

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
