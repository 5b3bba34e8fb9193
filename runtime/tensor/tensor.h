// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"
#include "runtime/tensor/storage.h"

namespace lockstep {

namespace autograd {
struct Meta;
}

/// A dense, row-major array on a device. Images are [N, H, W, C], volumes [N, D, H, W, C], sequences [N, T, C].
/// Copies share the data and the place in the autograd graph. A default-constructed tensor is undefined: whatever asks
/// it for its elements, shape, dtype or device throws UsageError.
class Tensor {
 public:
  Tensor() = default;

  /// Uninitialised.
  [[nodiscard]] static Tensor empty(const Shape& shape, DType dtype, Device device = kCpu);
  /// Zeroed bytes.
  [[nodiscard]] static Tensor zeros(const Shape& shape, DType dtype, Device device = kCpu);
  /// A CPU tensor with these elements, in row-major order. Throws ShapeError unless there are numel() of them.
  template <class T>
  [[nodiscard]] static Tensor from(const std::vector<T>& values, const Shape& shape);
  template <class T, std::size_t Extent>
  [[nodiscard]] static Tensor from(std::span<T, Extent> values, const Shape& shape) {
    return from_span(std::span<const std::remove_const_t<T>>(values), shape);
  }
  /// Shows memory of the caller's, with shape.numel() elements of `dtype` in row-major order: no copy. It stays valid
  /// until `release` is called, as the last tensor that shows it goes; without one, until the caller knows that none
  /// does. Address and dtype suit each other: throws UsageError for null, where there are elements, and for an address
  /// that is no multiple of size_of(dtype).
  [[nodiscard]] static Tensor from_blob(void* data, const Shape& shape, DType dtype, Device device = kCpu,
                                        std::function<void()> release = {});
  /// A view of `storage` from `byte_offset` on, which must lie inside it.
  [[nodiscard]] static Tensor view(Storage storage, std::size_t byte_offset, const Shape& shape, DType dtype);

  [[nodiscard]] bool defined() const { return impl_ != nullptr; }
  [[nodiscard]] const Shape& shape() const { return impl().shape; }
  [[nodiscard]] std::int64_t size(int d) const { return impl().shape[d]; }
  [[nodiscard]] std::int64_t numel() const { return impl().shape.numel(); }
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(numel()) * size_of(dtype()); }
  [[nodiscard]] DType dtype() const { return impl().dtype; }
  [[nodiscard]] Device device() const { return impl().storage.device(); }

  /// Writes through it are not seen: whoever writes here, or lets a kernel write, calls bump_version().
  [[nodiscard]] void* data() const { return impl().data; }
  /// The block that the elements lie in.
  [[nodiscard]] const Storage& storage() const { return impl().storage; }
  /// The elements as T, for reading. Throws ShapeError when T is not the dtype, and for a tensor that lies on a GPU.
  template <class T>
  [[nodiscard]] std::span<const T> as() const;
  /// The elements as T, for writing. Throws ShapeError as as() does. Counts as a write: ask again for each pass of
  /// writes. Throws UsageError, outside NoGrad, for the result of a recorded operation: its gradient would be that of
  /// the elements before. Write to its detach().
  template <class T>
  [[nodiscard]] std::span<T> mutable_as() const;
  /// Element `at` (row-major), of any dtype. Waits for the device where the tensor lies on one.
  [[nodiscard]] double item(std::int64_t at = 0) const;

  // Recorded for backward, as the operations of runtime/ops are: gradients flow to what they were called on, of
  // copy_from() to what was copied.

  /// The elements on another device; this tensor where it lies there already. From a device to the CPU it waits;
  /// the other way the copy is appended to the device's current stream.
  [[nodiscard]] Tensor to(Device device) const;
  /// The elements in another dtype; this tensor where it has that one already. Rounded to the nearest, but towards 0 to
  /// an integer dtype, whose nearest end stands for what lies outside; to bool: whether it is not 0. A gradient flows
  /// between floating dtypes.
  [[nodiscard]] Tensor to(DType dtype) const;
  /// The elements under another shape of as many; shares the data.
  [[nodiscard]] Tensor reshaped(const Shape& shape) const;
  /// Rows [begin, end) of the first dimension; shares the data.
  [[nodiscard]] Tensor rows(std::int64_t begin, std::int64_t end) const;
  /// Row `at`, of the shape without the first dimension; negative: counted from the end. Shares the data. Throws
  /// ShapeError for a scalar and for a row that is not there.
  [[nodiscard]] Tensor operator[](std::int64_t at) const;
  /// x(2, ops::Slice{1, 3}): ops::index, whose header, runtime/ops/index.h, defines it.
  template <class... Places>
  [[nodiscard]] Tensor operator()(const Places&... places) const;
  /// Overwrites the elements with those of `from`, of the same shape and dtype on any device: appended to the current
  /// stream of the one that is no CPU. From pageable host memory, or to it, the call waits. Counts as a write. Outside
  /// NoGrad it throws UsageError where backward would go wrong: for the result of a recorded operation, and, where
  /// `from` requires a gradient, for a leaf that requires one and for memory that other tensors show.
  void copy_from(const Tensor& from) const;

  // Outside the graph. Sharing the data, they count each other's writes.

  /// The data outside the graph, shared.
  [[nodiscard]] Tensor detach() const;
  /// detach().reshaped(shape) and detach().rows(begin, end), for those who compute without the graph.
  [[nodiscard]] Tensor detach(const Shape& shape) const;
  [[nodiscard]] Tensor detach_rows(std::int64_t begin, std::int64_t end) const;

  /// Whether two handles are one tensor (not: whether their elements are equal).
  [[nodiscard]] bool is(const Tensor& other) const { return impl_ == other.impl_; }
  /// Whether both show the same memory from the same first byte.
  [[nodiscard]] bool aliases(const Tensor& other) const {
    return defined() && other.defined() && data() == other.data();
  }
  /// How many handles show this one tensor; more where other threads copy them.
  [[nodiscard]] long handles() const { return impl_.use_count(); }
  /// Whether other tensors show its memory, or kept it for a backward pass.
  [[nodiscard]] bool is_shared() const;

  /// Counts writes in place to the memory that this tensor shows, through whichever view of it. The count tells a
  /// backward pass that a value which it needs is gone, and caches that they are stale.
  [[nodiscard]] std::uint64_t version() const { return impl().writes->load(std::memory_order_relaxed); }
  void bump_version() const { impl().writes->fetch_add(1, std::memory_order_relaxed); }
  /// From now on a write to either of the two counts for both: they hold one value, in two dtypes.
  void share_version(const Tensor& other) const { impl().writes = other.impl().writes; }

  /// Points this tensor, and every handle to it, at other memory with the same element count. How the arena moves
  /// parameters into one allocation. The dtype may change; the elements are not copied. Counts as a write; from then on
  /// this tensor and the views made of it have a version of their own, apart from other views of `storage`.
  void rebind(Storage storage, std::size_t byte_offset, DType dtype) const;

  // Automatic differentiation, defined in runtime/autograd.

  /// False for an undefined tensor.
  [[nodiscard]] bool requires_grad() const;
  /// Makes a leaf collect a gradient. Throws UsageError on a tensor that an operation produced.
  void set_requires_grad(bool requires_grad) const;
  /// The gradient collected by backward(); undefined before. Of a parameter in an arena (nn/arena.h) it is a view of
  /// the arena: further backward passes add to it, what is written to it is what the optimizer reads, and until
  /// zero_grad() every call gives the same tensor, which becomes float32, elsewhere in the arena, where a pass adds to
  /// 16 bits or GradScaler::unscale_() multiplies them. zero_grad() leaves it to those who still hold it, in memory of
  /// its own. Views of it (rows(), detach()) do not follow there: they show the arena, where the next gradient will
  /// lie.
  [[nodiscard]] Tensor grad() const;
  /// Walks the graph from this scalar; every leaf that requires a gradient adds to its grad().
  void backward() const;

  [[nodiscard]] const std::shared_ptr<autograd::Meta>& autograd_meta() const { return impl().meta; }
  void set_autograd_meta(std::shared_ptr<autograd::Meta> meta) const { impl().meta = std::move(meta); }

 private:
  template <class T>
  static Tensor from_span(std::span<const T> values, const Shape& shape);
  /// A view of `storage` that counts writes in `writes`.
  static Tensor view(Storage storage, std::size_t byte_offset, const Shape& shape, DType dtype,
                     std::shared_ptr<std::atomic<std::uint64_t>> writes);
  /// A view of this tensor's memory from `byte_offset` bytes behind its first element on.
  Tensor part(std::size_t byte_offset, const Shape& shape) const;
  /// copy_from() of a tensor that fits, without a word to anyone.
  void copy_elements(const Tensor& from) const;

  struct Impl {
    Storage storage;
    std::byte* data = nullptr;
    Shape shape;
    DType dtype = DType::kFloat32;
    std::shared_ptr<std::atomic<std::uint64_t>> writes;
    std::shared_ptr<autograd::Meta> meta;
  };

  Impl& impl() const {
    if (impl_ == nullptr) [[unlikely]] {
      refuse_undefined();
    }
    return *impl_;
  }
  [[noreturn, gnu::cold]] static void refuse_undefined();

  std::shared_ptr<Impl> impl_;
};

/// "float32 [32, 10] on cpu", for messages.
[[nodiscard]] std::string describe(const Tensor& tensor);

[[noreturn, gnu::cold]] void refuse_undefined(std::string_view operation, std::string_view argument);

/// Throws UsageError, which names both, where an operation's argument is undefined.
inline void require_defined(const Tensor& tensor, std::string_view operation, std::string_view argument) {
  if (!tensor.defined()) [[unlikely]] {
    refuse_undefined(operation, argument);
  }
}

}  // namespace lockstep
