// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"
#include "runtime/tensor/storage.h"

namespace lockstep {

namespace autograd {
struct Meta;
}

/// A dense, row-major array on a device. Images are [N, H, W, C], volumes [N, D, H, W, C], sequences [N, T, C].
/// Copies share the data and the place in the autograd graph. A default-constructed tensor is undefined.
class Tensor {
 public:
  Tensor() = default;

  /// Uninitialised.
  static Tensor empty(const Shape& shape, DType dtype, Device device = kCpu);
  /// Zeroed bytes.
  static Tensor zeros(const Shape& shape, DType dtype, Device device = kCpu);
  /// A CPU tensor with these elements, in row-major order. Throws ShapeError unless there are numel() of them.
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape);
  /// A view of `storage` from `byte_offset` on, which must lie inside it.
  static Tensor view(Storage storage, std::size_t byte_offset, const Shape& shape, DType dtype);

  bool defined() const { return impl_ != nullptr; }
  const Shape& shape() const { return impl_->shape; }
  std::int64_t size(int d) const { return impl_->shape[d]; }
  std::int64_t numel() const { return impl_->shape.numel(); }
  std::size_t bytes() const { return static_cast<std::size_t>(numel()) * size_of(dtype()); }
  DType dtype() const { return impl_->dtype; }
  Device device() const { return impl_->storage.device(); }

  /// Writes through it are not seen: whoever writes here, or lets a kernel write, calls bump_version().
  void* data() const { return impl_->data; }
  /// The block that the elements lie in.
  const Storage& storage() const { return impl_->storage; }
  /// The elements as T, for reading. Throws ShapeError when T is not the dtype, and for a tensor that lies on a GPU.
  template <class T>
  std::span<const T> as() const;
  /// The same for writing: counts as a write. Ask again for each pass of writes.
  template <class T>
  std::span<T> mutable_as() const;
  /// Element `at` (row-major), of any dtype. Waits for the device where the tensor lies on one.
  double item(std::int64_t at = 0) const;

  /// The same elements on another device, outside the graph; shares the data where it lies there already. From a device
  /// to the CPU it waits; the other way the copy is appended to the device's current stream.
  Tensor to(Device device) const;
  /// Overwrites the elements with those of `from`, of the same shape and dtype on any device: appended to the current
  /// stream of the one that is no CPU. From pageable host memory, or to it, the call waits. Counts as a write.
  void copy_from(const Tensor& from) const;

  /// The same elements under another shape with the same count; shares the data, not the graph.
  Tensor reshaped(const Shape& shape) const;
  /// Rows [begin, end) of the first dimension; shares the data, not the graph.
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  /// The same data outside the graph.
  Tensor detach() const;

  /// Whether two handles are one tensor (not: whether their elements are equal).
  bool is(const Tensor& other) const { return impl_ == other.impl_; }
  /// Whether both show the same memory from the same first byte.
  bool aliases(const Tensor& other) const { return defined() && other.defined() && data() == other.data(); }

  /// Counts writes in place to the memory that this tensor shows, through whichever view of it: what tells a backward
  /// pass that a value which it needs is gone, and caches that they are stale.
  std::uint64_t version() const { return impl_->writes->load(std::memory_order_relaxed); }
  void bump_version() const { impl_->writes->fetch_add(1, std::memory_order_relaxed); }
  /// From now on a write to either of the two counts for both: they hold one value, in two dtypes.
  void share_version(const Tensor& other) const { impl_->writes = other.impl_->writes; }

  /// Points this tensor, and every handle to it, at other memory with the same element count. How the arena moves
  /// parameters into one allocation. The dtype may change; the elements are not copied. Counts as a write; from then on
  /// this tensor and the views made of it have a version of their own, apart from other views of `storage`.
  void rebind(Storage storage, std::size_t byte_offset, DType dtype) const;

  // Automatic differentiation, defined in runtime/autograd.

  bool requires_grad() const;
  /// Makes a leaf collect a gradient. Throws UsageError on a tensor that an operation produced.
  void set_requires_grad(bool requires_grad) const;
  /// The gradient collected by backward(); undefined before.
  Tensor grad() const;
  /// Walks the graph from this scalar; every leaf that requires a gradient adds to its grad().
  void backward() const;

  const std::shared_ptr<autograd::Meta>& autograd_meta() const { return impl_->meta; }
  void set_autograd_meta(std::shared_ptr<autograd::Meta> meta) const { impl_->meta = std::move(meta); }

 private:
  /// A view of `storage` that counts writes in `writes`.
  static Tensor view(Storage storage, std::size_t byte_offset, const Shape& shape, DType dtype,
                     std::shared_ptr<std::atomic<std::uint64_t>> writes);
  /// A view of this tensor's memory from `byte_offset` bytes behind its first element on.
  Tensor part(std::size_t byte_offset, const Shape& shape) const;

  struct Impl {
    Storage storage;
    std::byte* data = nullptr;
    Shape shape;
    DType dtype = DType::kFloat32;
    std::shared_ptr<std::atomic<std::uint64_t>> writes;
    std::shared_ptr<autograd::Meta> meta;
  };
  std::shared_ptr<Impl> impl_;
};

/// "float32 [32, 10] on cpu", for messages.
std::string describe(const Tensor& tensor);

}  // namespace lockstep
