// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <source_location>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/kernels/reference/values.h"
#include "runtime/tensor/tensor.h"

// Tensors for tests: made, read and compared, whatever their dtype and device.
namespace lockstep::kernels::testing {

/// The elements of a tensor of any dtype on any device.
inline std::vector<double> values_of(const Tensor& tensor) {
  const Tensor host = tensor.to(kCpu);
  std::vector<double> values(static_cast<std::size_t>(host.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = host.item(static_cast<std::int64_t>(i));
  return values;
}

/// A tensor's elements, to compare bit by bit.
struct Bytes {
  std::vector<std::byte> values;

  /// std::vector's own goes from byte to byte in tests, which are not optimised.
  bool operator==(const Bytes& other) const {
    return values.size() == other.values.size() &&
           (values.empty() || std::memcmp(values.data(), other.values.data(), values.size()) == 0);
  }
};

/// None of an undefined tensor.
inline Bytes bytes_of(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  const Tensor host = tensor.to(kCpu);
  const auto* first = static_cast<const std::byte*>(host.data());
  return {{first, first + host.bytes()}};
}

/// A CPU tensor of any dtype with these elements, rounded to it. Throws ShapeError where the shape has another number.
inline Tensor tensor_of(const std::vector<double>& values, const Shape& shape, DType dtype) {
  if (static_cast<std::int64_t>(values.size()) != shape.numel()) {
    throw ShapeError(std::to_string(values.size()) + " values do not make a tensor of shape " + shape.str());
  }
  const Tensor tensor = Tensor::empty(shape, dtype);
  reference::store(values, tensor);
  return tensor;
}

/// Uniform in [low, high), the same for the same seed; rounded to the dtype.
inline Tensor random_tensor(const Shape& shape, DType dtype, std::uint32_t seed, double low = -1, double high = 1) {
  std::mt19937 generator(seed);
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  // Not std::uniform_real_distribution, whose numbers differ between standard libraries.
  for (double& value : values) value = low + (high - low) * (generator() * 0x1p-32);
  return tensor_of(values, shape, dtype);
}

/// |found - expected| <= relative * |expected| + absolute; infinities and NaNs must agree.
struct Bounds {
  double relative = 0;
  double absolute = 0;
};

/// The distance from 1 to the next number of a floating dtype.
inline double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 0x1p-52;
    case DType::kFloat32:
      return 0x1p-23;
    case DType::kFloat16:
      return 0x1p-10;
    case DType::kBFloat16:
      return 0x1p-7;
    default:
      return 0;
  }
}

/// The distance between neighbouring numbers of a dtype at a value.
inline double ulp_of(DType dtype, double value) {
  const double smallest = dtype == DType::kFloat16 ? 0x1p-24 : 0x1p-133;
  return value == 0 ? smallest : std::max(smallest, std::ldexp(epsilon_of(dtype), std::ilogb(value)));
}

/// What an operation's result may differ by from the exact one, for which `terms` numbers of up to `magnitude` are
/// added up in float32: 4 ulp sqrt(terms).
inline double float32_bound(double exact, std::int64_t terms, double magnitude) {
  const double count = static_cast<double>(std::max<std::int64_t>(terms, 1));
  return 4 * ulp_of(DType::kFloat32, std::max(std::abs(exact), magnitude)) * std::sqrt(count);
}

/// What a kernel may differ from exact arithmetic that stores `dtype` after accumulating `terms` products, each of
/// magnitude up to `magnitude`, in float32 (float64 for float64).
inline Bounds bounds_for(DType dtype, std::int64_t terms = 1, double magnitude = 1) {
  const double accumulation = epsilon_of(dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32);
  // A value near the middle between two neighbours may go either way; one of 16 bits is then a whole epsilon off.
  const double storage = std::max(epsilon_of(dtype), 8 * accumulation);
  const double smallest = dtype == DType::kFloat16 ? 0x1p-24 : 0;
  return {.relative = storage, .absolute = smallest + accumulation * static_cast<double>(terms) * magnitude};
}

inline bool is_close(double found, double expected, const Bounds& bounds) {
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) && std::isnan(found);
  if (std::isinf(expected) || std::isinf(found)) return expected == found;
  return std::abs(found - expected) <= bounds.relative * std::abs(expected) + bounds.absolute;
}

/// Fails with the first element that differs, the count of those that do and the largest difference.
inline void expect_close(const std::vector<double>& found, const std::vector<double>& expected, const Bounds& bounds,
                         const std::source_location& where = std::source_location::current()) {
  const ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "expect_close");
  ASSERT_EQ(found.size(), expected.size());
  std::optional<std::size_t> first;
  std::size_t count = 0;
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (is_close(found[i], expected[i], bounds)) continue;
    if (!first) first = i;
    ++count;
    largest = std::max(largest, std::abs(found[i] - expected[i]));
  }
  if (!first) return;
  ADD_FAILURE() << count << " of " << found.size() << " elements differ, first at " << *first << ": expected "
                << expected[*first] << ", found " << found[*first] << "; largest difference " << largest
                << " (bounds: relative " << bounds.relative << ", absolute " << bounds.absolute << ")";
}

inline void expect_close(const Tensor& found, const Tensor& expected, const Bounds& bounds,
                         const std::source_location& where = std::source_location::current()) {
  EXPECT_EQ(found.shape(), expected.shape());
  expect_close(values_of(found), values_of(expected), bounds, where);
}

inline void expect_close(const Tensor& found, const std::vector<double>& expected, const Bounds& bounds,
                         const std::source_location& where = std::source_location::current()) {
  expect_close(values_of(found), expected, bounds, where);
}

}  // namespace lockstep::kernels::testing
