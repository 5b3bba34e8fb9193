// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace lockstep {

Shape::Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) {
  if (extents.size() > static_cast<std::size_t>(kMaxRank)) {
    throw ShapeError(fmt::format("a tensor has at most {} dimensions, not {}", kMaxRank, extents.size()));
  }
  for (const std::int64_t extent : extents) {
    if (extent < 0) throw ShapeError("a tensor's extent cannot be negative: " + std::to_string(extent));
    if (__builtin_mul_overflow(numel_, extent, &numel_)) throw ShapeError("a tensor's element count overflows");
    extents_[static_cast<std::size_t>(rank_++)] = extent;
  }
}

std::int64_t Shape::operator[](int d) const {
  const int at = d < 0 ? d + rank_ : d;
  if (at < 0 || at >= rank_) throw ShapeError(fmt::format("dimension {} of shape {}", d, str()));
  return extents_[static_cast<std::size_t>(at)];
}

std::int64_t Shape::rows() const {
  std::int64_t rows = 1;
  for (int d = 0; d + 1 < rank_; ++d) rows *= extents_[static_cast<std::size_t>(d)];
  return rows;
}

Shape Shape::with(int d, std::int64_t extent) const {
  std::array<std::int64_t, kMaxRank> extents = extents_;
  (void)(*this)[d];
  extents[static_cast<std::size_t>(d < 0 ? d + rank_ : d)] = extent;
  return Shape(std::span<const std::int64_t>(extents.data(), static_cast<std::size_t>(rank_)));
}

Shape Shape::batched(std::int64_t count) const {
  std::array<std::int64_t, kMaxRank + 1> extents{count};
  std::ranges::copy(this->extents(), extents.begin() + 1);
  return Shape(std::span<const std::int64_t>(extents.data(), static_cast<std::size_t>(rank_) + 1));
}

std::string Shape::str() const {
  std::string text = "[";
  for (int d = 0; d < rank_; ++d) {
    if (d > 0) text += ", ";
    text += std::to_string(extents_[static_cast<std::size_t>(d)]);
  }
  return text + "]";
}

bool operator==(const Shape& a, const Shape& b) { return std::ranges::equal(a.extents(), b.extents()); }

}  // namespace lockstep
