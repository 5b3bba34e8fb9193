// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <omp.h>

#include <cstdint>

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels::cpu {

/// A buffer of `elements` float32 elements for each thread of a parallel loop, made before the loop begins.
class ThreadBuffers {
 public:
  explicit ThreadBuffers(std::int64_t elements)
      : elements_(elements), all_(Tensor::empty({omp_get_max_threads(), elements}, DType::kFloat32)) {}

  /// The buffer of the running thread.
  float* mine() const { return static_cast<float*>(all_.data()) + omp_get_thread_num() * elements_; }

 private:
  std::int64_t elements_;
  Tensor all_;
};

}  // namespace lockstep::kernels::cpu
