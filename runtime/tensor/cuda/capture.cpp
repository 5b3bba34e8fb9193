// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/cuda/capture.h"

#include "runtime/tensor/cuda/check.h"

namespace lockstep::gpu {

bool& capturing() {
  thread_local bool value = false;
  return value;
}

bool is_pageable(const void* data) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, data), "cudaPointerGetAttributes");
  return attributes.type == cudaMemoryTypeUnregistered;
}

void require_capturable(const void* data) {
  if (!capturing() || !is_pageable(data)) return;
  throw UsageError("a graph was to record a copy from or to host memory that is not pinned");
}

}  // namespace lockstep::gpu
