// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>

#include "runtime/tensor/stream.h"
#include "runtime/tensor/tensor.h"

namespace lockstep {

/// A struct that lies on a device, where kernels read and write it without the host. Copies share it.
template <class T>
class DeviceValue {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceValue() = default;
  /// Memory for what a kernel will write.
  explicit DeviceValue(Device device)
      : storage_(Storage::allocate(sizeof(T), device)),
        bytes_(Tensor::view(storage_, 0, {static_cast<std::int64_t>(sizeof(T))}, DType::kUInt8)) {}
  DeviceValue(const T& value, Device device) : DeviceValue(device) { write(value); }

  bool defined() const { return bytes_.defined(); }
  Device device() const { return bytes_.device(); }
  /// Device memory.
  T* data() const { return static_cast<T*>(bytes_.data()); }
  /// What it is now; waits for a GPU.
  T read() const {
    T value;
    host_view(value).copy_from(bytes_);
    if (device() != kCpu) Stream::current(device()).synchronize();
    return value;
  }
  T operator*() const { return read(); }
  /// Appended to the device's current stream.
  void write(const T& value) const {
    T copy = value;
    bytes_.copy_from(host_view(copy));
  }
  /// `count` elements of `dtype` that begin `offset` bytes into the struct, as a tensor.
  Tensor field(std::size_t offset, DType dtype, std::int64_t count = 1) const {
    return Tensor::view(storage_, offset, {count}, dtype);
  }
  const Tensor& bytes() const { return bytes_; }

 private:
  static Tensor host_view(T& value) {
    return Tensor::view(Storage(&value, sizeof(T), kCpu, nullptr), 0, {static_cast<std::int64_t>(sizeof(T))},
                        DType::kUInt8);
  }

  Storage storage_;
  Tensor bytes_;
};

}  // namespace lockstep
