// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace lockstep {

/// The extents of a dense row-major tensor, at most kMaxRank of them, each >= 0. A scalar has rank 0.
class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  /// Extent of dimension d; negative d counts from the end. Throws ShapeError outside the rank.
  std::int64_t operator[](int d) const;
  std::int64_t front() const { return (*this)[0]; }
  std::int64_t back() const { return (*this)[-1]; }
  /// Product of the extents; 1 for a scalar.
  [[nodiscard]] std::int64_t numel() const { return numel_; }
  /// Product of all extents but the last; what a per-channel operation calls its rows.
  std::int64_t rows() const;

  /// The shape with one extent replaced.
  [[nodiscard]] Shape with(int d, std::int64_t extent) const;
  /// The shape of `count` tensors of this one, stacked: [count, extents...]. Throws ShapeError above kMaxRank.
  [[nodiscard]] Shape batched(std::int64_t count) const;

  std::span<const std::int64_t> extents() const { return {extents_.data(), static_cast<std::size_t>(rank_)}; }
  /// "[32, 8, 8, 1]"
  std::string str() const;

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
  std::int64_t numel_ = 1;
};

}  // namespace lockstep
