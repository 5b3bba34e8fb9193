// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/widen.h"

#include <omp.h>

#include <algorithm>

namespace lockstep::kernels::cpu {

Tensor as_dtype(Backend& backend, const Tensor& tensor, DType dtype) {
  if (!tensor.defined() || tensor.dtype() == dtype) return tensor;
  const Tensor converted = Tensor::empty(tensor.shape(), dtype);
  backend.cast(tensor, converted);
  return converted;
}

Result::Result(Backend& backend, const Tensor& out, DType dtype)
    : backend_(backend),
      out_(out),
      buffer_(out.dtype() == dtype ? out : Tensor::empty(out.shape(), dtype)),
      in_place_(out.dtype() == dtype) {}

void Result::store(bool accumulate) const {
  if (in_place_) return;
  if (accumulate) {
    backend_.accumulate(buffer_, out_);
  } else {
    backend_.cast(buffer_, out_);
  }
}

std::int64_t chunk_rows(std::int64_t rows, std::int64_t row_bytes, std::int64_t stationary_bytes) {
  constexpr std::int64_t kCacheBytes = std::int64_t{1} << 19;
  constexpr std::int64_t kPasses = 4;
  const std::int64_t budget = std::max(omp_get_max_threads() * kCacheBytes, kPasses * stationary_bytes);
  const std::int64_t chunks = std::clamp<std::int64_t>((rows * row_bytes + budget - 1) / budget, 1, rows);
  return (rows + chunks - 1) / chunks;
}

}  // namespace lockstep::kernels::cpu
