// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace lockstep {

/// Places for tensors one behind the other in one block of memory.
class BlockLayout {
 public:
  /// The alignment of the GPU's allocator. Kernels read 16 bytes at a time.
  static constexpr std::size_t kAlignment = 512;
  static constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  /// Places the next `bytes` and returns their offset.
  std::size_t add(std::size_t bytes) {
    const std::size_t offset = end_;
    end_ += aligned(bytes);
    return offset;
  }
  /// The bytes that the block takes so far.
  std::size_t bytes() const { return end_; }

 private:
  std::size_t end_ = 0;
};

}  // namespace lockstep
