// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <source_location>
#include <string>
#include <vector>

#include "runtime/kernels/backend.h"
#include "runtime/tensor/error.h"

namespace lockstep::kernels::testing {

/// The elements of a tensor of any dtype.
inline std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = tensor.item(static_cast<std::int64_t>(i));
  return values;
}

/// A CPU tensor of any dtype with these elements, rounded to it.
inline Tensor tensor_of(const std::vector<double>& values, const Shape& shape, DType dtype) {
  const Tensor tensor = Tensor::empty(shape, dtype);
  reference_backend().cast(Tensor::from(values, shape), tensor);
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

/// Why tensors on the device cannot be had here; nothing when they can.
inline std::optional<std::string> why_unavailable(Device device) {
  try {
    Tensor::empty({1}, DType::kFloat32, device);
    return std::nullopt;
  } catch (const EnvironmentError& error) {
    return error.what();
  }
}

/// A device type and a dtype that a typed test runs with.
template <DeviceType device_type, DType element>
struct On {
  static constexpr Device device{device_type, 0};
  static constexpr DType dtype = element;
};

using CpuTypes = ::testing::Types<On<DeviceType::kCpu, DType::kFloat32>, On<DeviceType::kCpu, DType::kFloat16>,
                                  On<DeviceType::kCpu, DType::kBFloat16>, On<DeviceType::kCpu, DType::kFloat64>>;

struct OnName {
  template <class T>
  static std::string GetName(int) {
    return str(T::device) + "_" + std::string(name_of(T::dtype));
  }
};

/// A test of the device's backend, for each device and dtype:
///
///   template <class T> using AddTest = KernelTest<T>;
///   TYPED_TEST_SUITE(AddTest, CpuTypes, OnName);
///   TYPED_TEST(AddTest, BroadcastsOverRows) {
///     const Tensor a = this->random({3, 4}, 1), b = this->random({4}, 2);
///     this->expect_matches_reference([&](Backend& tested) {
///       const Tensor out = this->empty({3, 4});
///       tested.add(a, b, out);
///       return std::vector{out};
///     }, bounds_for(this->kDType));
///   }
template <class T>
class KernelTest : public ::testing::Test {
 protected:
  static constexpr Device kDevice = T::device;
  static constexpr DType kDType = T::dtype;
  /// The dtype of statistics and losses beside kDType.
  static constexpr DType kWide = kDType == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;

  void SetUp() override {
    if (const auto reason = why_unavailable(kDevice)) GTEST_SKIP() << *reason;
  }

  static Tensor random(const Shape& shape, std::uint32_t seed, double low = -1, double high = 1) {
    return random_tensor(shape, kDType, seed, low, high);
  }
  static Tensor random_wide(const Shape& shape, std::uint32_t seed, double low = -1, double high = 1) {
    return random_tensor(shape, kWide, seed, low, high);
  }
  static Tensor empty(const Shape& shape, DType dtype = kDType) { return Tensor::empty(shape, dtype, kDevice); }

  /// run(backend) computes and returns its outputs as a vector; the device's must be those of the reference.
  template <class Run>
  void expect_matches_reference(Run run, const Bounds& bounds,
                                const std::source_location& where = std::source_location::current()) {
    const std::vector<Tensor> expected = run(reference_backend());
    const std::vector<Tensor> found = run(backend(kDevice));
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      SCOPED_TRACE("output " + std::to_string(i));
      expect_close(found[i], expected[i], bounds, where);
    }
  }
};

}  // namespace lockstep::kernels::testing
