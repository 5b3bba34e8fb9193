// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "runtime/tensor/tensor.h"

namespace lockstep {

/// A struct that lies on a device, where kernels read and write it without the host. Copies share it.
template <class T>
class DeviceValue {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceValue() = default;
  /// Memory for what a kernel will write.
  explicit DeviceValue(Device device) : DeviceValue(Storage::allocate(sizeof(T), device), 0) {}
  DeviceValue(const T& value, Device device) : DeviceValue(device) { write(value); }
  /// The struct that begins `offset` bytes into `storage`.
  DeviceValue(Storage storage, std::size_t offset)
      : storage_(std::move(storage)),
        offset_(offset),
        bytes_(Tensor::view(storage_, offset_, {static_cast<std::int64_t>(sizeof(T))}, DType::kUInt8)) {}

  bool defined() const { return bytes_.defined(); }
  Device device() const { return bytes_.device(); }
  /// Device memory.
  T* data() const { return static_cast<T*>(bytes_.data()); }
  /// The value of now. Waits for a GPU.
  T read() const {
    T value;
    host_view(value).copy_from(bytes_);
    return value;
  }
  T operator*() const { return read(); }
  /// Appended to the device's current stream.
  void write(const T& value) const {
    T copy = value;
    bytes_.copy_from(host_view(copy));
  }
  /// A member that is a number or an array of them, in the same memory: a tensor of its type, [count]. A larger `count`
  /// includes members of the same type behind it.
  template <class M, std::same_as<T> S, class Number = std::remove_all_extents_t<M>>
  Tensor field(M S::*member, std::int64_t count = sizeof(M) / sizeof(Number)) const {
    return Tensor::view(storage_, offset_ + offset_of(member), {count}, dtype_of<Number>);
  }
  /// A member that is a struct, in the same memory.
  template <class M, std::same_as<T> S>
  DeviceValue<M> part(M S::*member) const {
    return {storage_, offset_ + offset_of(member)};
  }
  /// Copies the other's value here; appended to the device's current stream.
  void copy_from(const DeviceValue& other) const { bytes_.copy_from(other.bytes_); }
  const Tensor& bytes() const { return bytes_; }

 private:
  static Tensor host_view(T& value) {
    return Tensor::view(Storage(&value, sizeof(T), kCpu, nullptr), 0, {static_cast<std::int64_t>(sizeof(T))},
                        DType::kUInt8);
  }

  template <class M, class S>
  static std::size_t offset_of(M S::*member) {
    const S value{};
    return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&(value.*member)) -
                                    reinterpret_cast<const std::byte*>(&value));
  }

  Storage storage_;
  std::size_t offset_ = 0;
  Tensor bytes_;
};

}  // namespace lockstep
