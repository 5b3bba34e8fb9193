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
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/kernels/backend.h"
#include "runtime/kernels/cuda_backend.h"
#include "runtime/tensor/device_value.h"
#include "tests/support/devices.h"

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

/// A device type and a dtype that a typed test runs with; TF32: whether float32 products may round their operands to
/// it.
template <DeviceType device_type, DType element, bool tf32 = false>
struct On {
  static constexpr Device device{device_type, 0};
  static constexpr DType dtype = element;
  static constexpr bool kTf32 = tf32;
};

inline constexpr DeviceType kCpuType = DeviceType::kCpu;
inline constexpr DeviceType kCudaType = DeviceType::kCuda;

/// The dtypes that fast kernels take.
using FastTypes =
    ::testing::Types<On<kCpuType, DType::kFloat32>, On<kCpuType, DType::kFloat16>, On<kCpuType, DType::kBFloat16>,
                     On<kCudaType, DType::kFloat32>, On<kCudaType, DType::kFloat16>, On<kCudaType, DType::kBFloat16>>;

/// And float64, which a GPU refuses.
using AllTypes =
    ::testing::Types<On<kCpuType, DType::kFloat32>, On<kCpuType, DType::kFloat16>, On<kCpuType, DType::kBFloat16>,
                     On<kCpuType, DType::kFloat64>, On<kCudaType, DType::kFloat32>, On<kCudaType, DType::kFloat16>,
                     On<kCudaType, DType::kBFloat16>>;

/// What libraries multiply.
using ProductTypes = ::testing::Types<On<kCpuType, DType::kFloat32>, On<kCpuType, DType::kFloat16>,
                                      On<kCpuType, DType::kBFloat16>, On<kCpuType, DType::kFloat64>,
                                      On<kCudaType, DType::kFloat32>, On<kCudaType, DType::kFloat32, true>,
                                      On<kCudaType, DType::kFloat16>, On<kCudaType, DType::kBFloat16>>;

struct OnName {
  template <class T>
  static std::string GetName(int) {
    return lockstep::devices::name_of(T::device) + "_" + (T::kTf32 ? "tf32" : std::string(lockstep::name_of(T::dtype)));
  }
};

/// A test of the device's backend, for each device and dtype. Inputs are made on the CPU; `on` is where a run computes:
/// on(x) is x there, on.empty() an output, and on->add() its backend's operation.
///
///   template <class T> using AddTest = KernelTest<T>;
///   TYPED_TEST_SUITE(AddTest, AllTypes, OnName);
///   TYPED_TEST(AddTest, BroadcastsOverRows) {
///     const Tensor a = this->random({3, 4}, 1), b = this->random({4}, 2);
///     this->expect_matches_reference([&](const auto& on) {
///       const Tensor out = on.empty({3, 4});
///       on->add(on(a), on(b), out);
///       return std::vector{out};
///     }, this->bounds());
///   }
template <class T>
class KernelTest : public ::testing::Test {
 protected:
  static constexpr Device kDevice = T::device;
  static constexpr DType kDType = T::dtype;
  /// The dtype of statistics and losses beside kDType.
  static constexpr DType kWide = kDType == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;

  void SetUp() override {
    if (const auto reason = lockstep::devices::why_skipped(kDevice)) GTEST_SKIP() << *reason;
    set_tf32(T::kTf32);
  }
  void TearDown() override { set_tf32(false); }

  static Tensor random(const Shape& shape, std::uint32_t seed, double low = -1, double high = 1) {
    return random_tensor(shape, kDType, seed, low, high);
  }
  static Tensor random_wide(const Shape& shape, std::uint32_t seed, double low = -1, double high = 1) {
    return random_tensor(shape, kWide, seed, low, high);
  }

  /// bounds_for(), wider where products are rounded to TF32: each operand to 10 bits of mantissa.
  static Bounds bounds(std::int64_t terms = 1, double magnitude = 1, DType dtype = kDType) {
    Bounds bounds = bounds_for(dtype, terms, magnitude);
    if (T::kTf32) bounds.absolute += 0x1p-10 * static_cast<double>(terms) * magnitude;
    return bounds;
  }

  /// A backend, and tensors where it computes.
  class Place {
   public:
    /// `unaligned`: every tensor begins one element behind an aligned address, as a view may.
    Place(const Backend& backend, Device device, bool unaligned = false)
        : backend_(backend), device_(device), unaligned_(unaligned) {}

    const Backend* operator->() const { return &backend_; }
    Device device() const { return device_; }
    /// The same elements there; undefined stays undefined. Not to be written: it may be the tensor itself.
    Tensor operator()(const Tensor& tensor) const {
      if (!tensor.defined()) return {};
      return unaligned_ ? copy(tensor) : tensor.to(device_);
    }
    /// The same elements there in memory of their own.
    Tensor copy(const Tensor& tensor) const {
      const Tensor there = empty(tensor.shape(), tensor.dtype());
      there.copy_from(tensor);
      return there;
    }
    Tensor empty(const Shape& shape, DType dtype = kDType) const {
      const std::size_t offset = unaligned_ ? size_of(dtype) : 0;
      const std::size_t bytes = static_cast<std::size_t>(shape.numel()) * size_of(dtype);
      return Tensor::view(Storage::allocate(offset + bytes, device_), offset, shape, dtype);
    }
    Tensor zeros(const Shape& shape, DType dtype = kDType) const { return copy(Tensor::zeros(shape, dtype)); }
    /// A number, or a struct of them, that kernels read and write there.
    template <class V>
    DeviceValue<V> value(const V& host) const {
      return {host, device_};
    }

   private:
    const Backend& backend_;
    Device device_;
    bool unaligned_;
  };
  static Place reference() { return {reference_backend(), kCpu}; }
  static Place tested() { return {backend(kDevice), kDevice}; }

  /// run(on) computes and returns its outputs as a vector; the device's must be those of the reference, whether or not
  /// tensors are aligned for wide accesses.
  template <class Run>
  void expect_matches_reference(Run run, const Bounds& bounds,
                                const std::source_location& where = std::source_location::current()) {
    const std::vector<Tensor> expected = run(reference());
    for (const bool unaligned : {false, true}) {
      SCOPED_TRACE(unaligned ? "unaligned" : "aligned");
      const std::vector<Tensor> found = run(Place(backend(kDevice), kDevice, unaligned));
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        SCOPED_TRACE("output " + std::to_string(i));
        expect_close(found[i], expected[i], bounds, where);
      }
    }
  }
};

}  // namespace lockstep::kernels::testing
