// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/kernels/backend_choice.h"
#include "runtime/kernels/cuda_backend.h"
#include "runtime/tensor/device_value.h"
#include "tests/runtime/kernels/function_ref.h"
#include "tests/runtime/kernels/tables.h"
#include "tests/runtime/kernels/tensors.h"
#include "tests/runtime/kernels/test_on.h"

namespace lockstep::kernels::testing {

/// A test of families of the device's backend, for each device and dtype. Inputs are made on the CPU; `on` is where a
/// run computes: on(x) is x there, on.empty() an output, and on->add() its backend's operation.
///
///   using AddTest = KernelTest<Elementwise>;
///   INSTANTIATE_TEST_SUITE_P(On, AddTest, kAllTypes, name_of_on);
///   TEST_P(AddTest, BroadcastsOverRows) {
///     const Tensor a = random({3, 4}, 1), b = random({4}, 2);
///     expect_matches_reference([&](const Place& on) {
///       const Tensor out = on.empty({3, 4});
///       on->add(on(a), on(b), out);
///       return std::vector{out};
///     }, bounds());
///   }
template <class... Families>
class KernelTest : public TestOn {
 protected:
  void SetUp() override {
    TestOn::SetUp();
    set_tf32(GetParam().tf32);
  }
  void TearDown() override { set_tf32(false); }

  /// bounds_for(), wider where products are rounded to TF32: each operand to 10 bits of mantissa.
  static Bounds bounds(std::int64_t terms = 1, double magnitude = 1, DType stored = dtype()) {
    Bounds bounds = bounds_for(stored, terms, magnitude);
    if (GetParam().tf32) bounds.absolute += 0x1p-10 * static_cast<double>(terms) * magnitude;
    return bounds;
  }

  /// The functions of a backend, and tensors where it computes.
  class Place {
   public:
    /// `unaligned`: every tensor begins one element behind an aligned address, as a view may.
    explicit Place(Device device, bool unaligned = false) : kernels_(device), device_(device), unaligned_(unaligned) {}

    const Tables<Families...>* operator->() const { return &kernels_; }
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
    Tensor empty(const Shape& shape, DType dtype = TestOn::dtype()) const {
      const std::size_t offset = unaligned_ ? size_of(dtype) : 0;
      const std::size_t bytes = static_cast<std::size_t>(shape.numel()) * size_of(dtype);
      return Tensor::view(Storage::allocate(offset + bytes, device_), offset, shape, dtype);
    }
    Tensor zeros(const Shape& shape, DType dtype = TestOn::dtype()) const { return copy(Tensor::zeros(shape, dtype)); }
    /// A number, or a struct of them, that kernels read and write there.
    template <class V>
    DeviceValue<V> value(const V& host) const {
      return {host, device_};
    }

   private:
    Tables<Families...> kernels_;
    Device device_;
    bool unaligned_;
  };
  static Place reference() {
    const ScopedBackend scope(reference_backend());
    return Place(kCpu);
  }
  static Place tested() { return Place(device()); }

  /// run(on) computes and returns its outputs as a vector; the device's must be those of the reference, whether or not
  /// tensors are aligned for wide accesses.
  static void expect_matches_reference(FunctionRef<std::vector<Tensor>(const Place&)> run, const Bounds& bounds,
                                       const std::source_location& where = std::source_location::current()) {
    const std::vector<Tensor> expected = run(reference());
    for (const bool unaligned : {false, true}) {
      SCOPED_TRACE(unaligned ? "unaligned" : "aligned");
      const std::vector<Tensor> found = run(Place(device(), unaligned));
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        SCOPED_TRACE("output " + std::to_string(i));
        expect_close(found[i], expected[i], bounds, where);
      }
    }
  }
};

}  // namespace lockstep::kernels::testing
