// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "runtime/tensor/device.h"
#include "runtime/tensor/memory.h"

namespace lockstep {

/// A block of device memory, 64-byte aligned. Copies share the block; the last one gives it back.
class Storage {
 public:
  Storage() = default;
  /// Takes over `data`, which stays valid until `release` is called. Used for memory that somebody else allocated.
  Storage(void* data, std::size_t bytes, Device device, std::function<void()> release);
  /// Takes over memory that was taken to hold tensors, by an allocator or as a window shared between processes:
  /// memory_statistics() counts it until it is released.
  static Storage counted(void* data, std::size_t bytes, Device device, std::function<void()> release);

  /// Uninitialised memory from the device's caching allocator. Throws MemoryError.
  static Storage allocate(std::size_t bytes, Device device);

  void* data() const { return block_ ? block_->data : nullptr; }
  std::size_t bytes() const { return block_ ? block_->bytes : 0; }
  Device device() const { return block_ ? block_->device : kCpu; }
  explicit operator bool() const { return block_ != nullptr; }
  /// The count of writes in place that the views of this block share, unless they have one of their own; see
  /// Tensor::version(). Keeps the block alive.
  std::shared_ptr<std::atomic<std::uint64_t>> writes() const;

 private:
  struct Block {
    void* data;
    std::size_t bytes;
    Device device;
    std::function<void()> release;
    std::optional<MemoryPurpose> purpose;  ///< under which it is counted
    mutable std::atomic<std::uint64_t> writes{0};
    Block(void* data_in, std::size_t bytes_in, Device device_in, std::function<void()> release_in,
          std::optional<MemoryPurpose> purpose_in);
    ~Block();
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
  };
  std::shared_ptr<const Block> block_;
};

}  // namespace lockstep
