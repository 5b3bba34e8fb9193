// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/tensor/device.h"

namespace lockstep::gpu {

/// Device memory in segments taken from CUDA and cut into blocks: best fit, neighbours that are free are joined again.
/// A block belongs to the stream for which it was allocated, and its memory goes only to later allocations of that
/// stream, so freeing needs to wait for nothing. Thread-safe.
///
/// Blocks are multiples of 512 bytes, so every one is aligned for 16-byte accesses and for cuDNN.
class CudaAllocator {
 public:
  static CudaAllocator& of(Device device);

  void* allocate(std::size_t bytes, cudaStream_t stream);
  void deallocate(void* data) noexcept;
  /// Bytes taken from CUDA, cached blocks included.
  std::size_t reserved() const;
  /// Gives segments that hold no block back to CUDA.
  void release_cached();

  /// Memory that a CUDA graph refers to: while a pool is open on a stream, allocations of the stream, and of streams
  /// that its capture has drawn in, come from it, and what they free returns to it, so that no later allocation reuses
  /// an address of the graph. Lives as long as the graph. One at a time is open.
  class Pool {
   public:
    explicit Pool(CudaAllocator& allocator);
    /// The graph must have finished.
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    void open(cudaStream_t stream);
    void close(cudaStream_t stream);

   private:
    CudaAllocator& allocator_;
    std::uint64_t id_;
  };

 private:
  explicit CudaAllocator(Device device);
  struct State;
  State* state_;  // never destroyed: static tensors may outlive every other static object
};

}  // namespace lockstep::gpu
