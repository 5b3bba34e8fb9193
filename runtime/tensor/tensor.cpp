// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/tensor/differentiation.h"
#include "runtime/tensor/gpu.h"
#include "runtime/tensor/gpu_dtypes.h"

namespace lockstep {

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  gpu::require_dtype(dtype, device);
  const std::size_t bytes = static_cast<std::size_t>(shape.numel()) * size_of(dtype);
  return view(Storage::allocate(bytes, device), 0, shape, dtype);
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, Device device) {
  Tensor tensor = empty(shape, dtype, device);
  if (device.type == DeviceType::kCpu) {
    std::memset(tensor.data(), 0, tensor.bytes());
  } else {
    gpu::zero(tensor.data(), tensor.bytes(), Stream::current(device));
  }
  return tensor;
}

namespace {

template <class T>
Tensor filled(const auto& values, const Shape& shape) {
  if (shape.numel() != static_cast<std::int64_t>(values.size())) {
    throw ShapeError(fmt::format("{} values for a tensor of shape {}", values.size(), shape.str()));
  }
  const Tensor tensor = Tensor::empty(shape, dtype_of<T>);
  std::ranges::copy(values, tensor.mutable_as<T>().begin());
  return tensor;
}

}  // namespace

template <class T>
Tensor Tensor::from(const std::vector<T>& values, const Shape& shape) {
  return filled<T>(values, shape);
}

template <class T>
Tensor Tensor::from_span(std::span<const T> values, const Shape& shape) {
  return filled<T>(values, shape);
}

Tensor Tensor::from_blob(void* data, const Shape& shape, DType dtype, Device device, std::function<void()> release) {
  gpu::require_dtype(dtype, device);
  const std::size_t bytes = static_cast<std::size_t>(shape.numel()) * size_of(dtype);
  if (data == nullptr && bytes > 0) throw UsageError("from_blob: no memory is given for " + shape.str());
  if (reinterpret_cast<std::uintptr_t>(data) % size_of(dtype) != 0) {
    throw UsageError(
        fmt::format("from_blob: the address is no multiple of the {} bytes of a {}", size_of(dtype), name_of(dtype)));
  }
  return view(Storage(data, bytes, device, std::move(release)), 0, shape, dtype);
}

Tensor Tensor::view(Storage storage, std::size_t byte_offset, const Shape& shape, DType dtype) {
  std::shared_ptr<std::atomic<std::uint64_t>> writes = storage.writes();
  return view(std::move(storage), byte_offset, shape, dtype, std::move(writes));
}

Tensor Tensor::view(Storage storage, std::size_t byte_offset, const Shape& shape, DType dtype,
                    std::shared_ptr<std::atomic<std::uint64_t>> writes) {
  const std::size_t bytes = static_cast<std::size_t>(shape.numel()) * size_of(dtype);
  if (byte_offset > storage.bytes() || bytes > storage.bytes() - byte_offset) {
    throw ShapeError(
        fmt::format("a view of {} bytes at {} does not fit in {} bytes", bytes, byte_offset, storage.bytes()));
  }
  Tensor tensor;
  tensor.impl_ = std::make_shared<Impl>();
  tensor.impl_->data = static_cast<std::byte*>(storage.data()) + byte_offset;
  tensor.impl_->writes = std::move(writes);
  tensor.impl_->storage = std::move(storage);
  tensor.impl_->shape = shape;
  tensor.impl_->dtype = dtype;
  return tensor;
}

template <class T>
std::span<const T> Tensor::as() const {
  if (dtype_of<T> != dtype()) {
    throw ShapeError("a tensor of " + std::string(name_of(dtype())) + " was read as " +
                     std::string(name_of(dtype_of<T>)));
  }
  if (device() != kCpu) throw ShapeError("the CPU cannot read " + describe(*this) + "; copy it with to(kCpu)");
  return {static_cast<const T*>(data()), static_cast<std::size_t>(numel())};
}

template <class T>
std::span<T> Tensor::mutable_as() const {
  const std::size_t count = as<T>().size();  // the same errors
  if (autograd_meta()) differentiation().require_writable(*this, "mutable_as");
  bump_version();
  return {static_cast<T*>(data()), count};
}

double Tensor::item(std::int64_t at) const {
  if (at < 0 || at >= numel()) throw ShapeError(fmt::format("element {} of {}", at, describe(*this)));
  if (device() != kCpu) return detach({numel()}).detach_rows(at, at + 1).to(kCpu).item();
  const std::size_t index = static_cast<std::size_t>(at);
  switch (dtype()) {
    case DType::kFloat32:
      return as<float>()[index];
    case DType::kFloat16:
      return as<Half>()[index];
    case DType::kBFloat16:
      return as<BFloat16>()[index];
    case DType::kFloat64:
      return as<double>()[index];
    case DType::kInt64:
      return static_cast<double>(as<std::int64_t>()[index]);
    case DType::kInt32:
      return as<std::int32_t>()[index];
    case DType::kUInt8:
      return as<std::uint8_t>()[index];
    case DType::kBool:
      return as<bool>()[index] ? 1 : 0;
  }
  throw ShapeError("element of " + describe(*this));
}

Tensor Tensor::to(Device device) const {
  if (device == this->device()) return *this;
  const Tensor there = empty(shape(), dtype(), device);
  there.copy_elements(*this);  // waits for a GPU: the CPU's allocator gives no pinned memory
  differentiation().record_to(there, *this);
  return there;
}

void Tensor::copy_from(const Tensor& from) const {
  require_defined(*this, "copy_from", "the tensor to write");
  require_defined(from, "copy_from", "its argument");
  if (from.shape() != shape() || from.dtype() != dtype()) {
    throw ShapeError("cannot copy " + describe(from) + " into " + describe(*this));
  }
  if (autograd_meta() || from.autograd_meta()) differentiation().require_copyable(*this, from);
  copy_elements(from);
  bump_version();
  differentiation().record_copy(*this, from);
}

void Tensor::copy_elements(const Tensor& from) const {
  const Device device = this->device() == kCpu ? from.device() : this->device();
  if (device == kCpu) {
    std::memcpy(data(), from.data(), bytes());
  } else {
    gpu::copy(data(), from.data(), bytes(), Stream::current(device));
  }
}

Tensor Tensor::part(std::size_t byte_offset, const Shape& shape) const {
  const std::size_t offset = static_cast<std::size_t>(impl_->data - static_cast<std::byte*>(impl_->storage.data()));
  return view(impl_->storage, offset + byte_offset, shape, dtype(), impl_->writes);
}

Tensor Tensor::detach() const { return part(0, shape()); }

Tensor Tensor::detach(const Shape& shape) const {
  if (shape.numel() != numel()) throw ShapeError("cannot reshape " + describe(*this) + " to " + shape.str());
  return part(0, shape);
}

Tensor Tensor::detach_rows(std::int64_t begin, std::int64_t end) const {
  if (begin < 0 || begin > end || end > size(0)) {
    throw ShapeError(fmt::format("rows {} to {} of {}", begin, end, describe(*this)));
  }
  const std::size_t row_bytes = numel() == 0 ? 0 : static_cast<std::size_t>(numel() / size(0)) * size_of(dtype());
  return part(static_cast<std::size_t>(begin) * row_bytes, shape().with(0, end - begin));
}

Tensor Tensor::reshaped(const Shape& shape) const {
  const Tensor result = detach(shape);
  differentiation().record_reshape(result, *this);
  return result;
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t end) const {
  const Tensor result = detach_rows(begin, end);
  differentiation().record_rows(result, *this, begin);
  return result;
}

Tensor Tensor::operator[](std::int64_t at) const {
  if (shape().rank() == 0) throw ShapeError("a scalar has no rows: " + describe(*this));
  const std::int64_t row = at < 0 ? at + size(0) : at;
  if (row < 0 || row >= size(0)) throw ShapeError(fmt::format("row {} of {}", at, describe(*this)));
  return rows(row, row + 1).reshaped(Shape(shape().extents().subspan(1)));
}

bool Tensor::is_shared() const {
  // A block's own count is kept by whoever keeps the block: this tensor does by both of its members.
  const bool counted_by_block = impl().storage.writes().get() == impl().writes.get();
  return impl().writes.use_count() > (counted_by_block ? 2 : 1);
}

void Tensor::rebind(Storage storage, std::size_t byte_offset, DType dtype) const {
  const Tensor there = view(std::move(storage), byte_offset, shape(), dtype);
  impl_->storage = there.impl_->storage;
  impl_->data = there.impl_->data;
  impl_->dtype = dtype;
  impl_->writes = std::make_shared<std::atomic<std::uint64_t>>(version() + 1);
}

void Tensor::refuse_undefined() {
  throw UsageError("an undefined tensor was used as a value",
                   "A default-constructed tensor is undefined, and so is grad() until a backward pass has reached its "
                   "tensor: ask defined() first.");
}

void refuse_undefined(std::string_view operation, std::string_view argument) {
  throw UsageError(fmt::format("{}: {} is an undefined tensor", operation, argument),
                   "A default-constructed tensor is undefined, and so is grad() until a backward pass has reached its "
                   "tensor.");
}

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  return std::string(name_of(tensor.dtype())) + " " + tensor.shape().str() + " on " + str(tensor.device());
}

template Tensor Tensor::from(const std::vector<float>&, const Shape&);
template Tensor Tensor::from_span(std::span<const float>, const Shape&);
template Tensor Tensor::from(const std::vector<Half>&, const Shape&);
template Tensor Tensor::from_span(std::span<const Half>, const Shape&);
template Tensor Tensor::from(const std::vector<BFloat16>&, const Shape&);
template Tensor Tensor::from_span(std::span<const BFloat16>, const Shape&);
template Tensor Tensor::from(const std::vector<double>&, const Shape&);
template Tensor Tensor::from_span(std::span<const double>, const Shape&);
template Tensor Tensor::from(const std::vector<std::int64_t>&, const Shape&);
template Tensor Tensor::from_span(std::span<const std::int64_t>, const Shape&);
template Tensor Tensor::from(const std::vector<std::int32_t>&, const Shape&);
template Tensor Tensor::from_span(std::span<const std::int32_t>, const Shape&);
template Tensor Tensor::from(const std::vector<std::uint8_t>&, const Shape&);
template Tensor Tensor::from_span(std::span<const std::uint8_t>, const Shape&);
template Tensor Tensor::from(const std::vector<bool>&, const Shape&);
template Tensor Tensor::from_span(std::span<const bool>, const Shape&);
template std::span<const float> Tensor::as() const;
template std::span<float> Tensor::mutable_as() const;
template std::span<const Half> Tensor::as() const;
template std::span<Half> Tensor::mutable_as() const;
template std::span<const BFloat16> Tensor::as() const;
template std::span<BFloat16> Tensor::mutable_as() const;
template std::span<const double> Tensor::as() const;
template std::span<double> Tensor::mutable_as() const;
template std::span<const std::int64_t> Tensor::as() const;
template std::span<std::int64_t> Tensor::mutable_as() const;
template std::span<const std::int32_t> Tensor::as() const;
template std::span<std::int32_t> Tensor::mutable_as() const;
template std::span<const std::uint8_t> Tensor::as() const;
template std::span<std::uint8_t> Tensor::mutable_as() const;
template std::span<const bool> Tensor::as() const;
template std::span<bool> Tensor::mutable_as() const;

}  // namespace lockstep
