// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/cuda/capture.h"

#include "runtime/tensor/cuda/check.h"

namespace lockstep::gpu {

bool& capturing() {
  thread_local bool value = false;
  return value;
}

void require_capturable(const void* data) {
  if (!capturing()) return;
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, data), "cudaPointerGetAttributes");
  if (attributes.type != cudaMemoryTypeUnregistered) return;
  throw UsageError("a graph was to record a copy from or to host memory that is not pinned");
}

}  // namespace lockstep::gpu
