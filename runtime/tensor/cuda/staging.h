// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "runtime/tensor/device.h"

namespace lockstep::gpu {

/// Copies from pageable host memory to a device by way of page-locked memory, so that the source has been read when the
/// call returns. CUDA promises no such thing everywhere: a device that reads the host's pages by itself may read them
/// later, when a variable on the stack has ended. Thread-safe.
class Staging {
 public:
  static Staging& of(Device device);

  /// Appends the copy to the stream. Waits for the device where more is on its way than the page-locked memory holds.
  void copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream);

 private:
  explicit Staging(Device device);
  struct State;
  State* state_;  // never destroyed: static tensors may outlive every other static object
};

}  // namespace lockstep::gpu
