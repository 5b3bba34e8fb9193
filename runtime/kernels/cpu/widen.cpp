// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/widen.h"

#include <omp.h>

#include <algorithm>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/elementwise.h"

namespace lockstep::kernels::cpu {

Tensor as_dtype(const Tensor& tensor, DType dtype) {
  if (!tensor.defined() || tensor.dtype() == dtype) return tensor;
  const Tensor converted = Tensor::empty(tensor.shape(), dtype);
  kElementwise.cast(tensor, converted);
  return converted;
}

Result::Result(const Tensor& out, DType dtype)
    : out_(out),
      buffer_(out.dtype() == dtype ? out : Tensor::empty(out.shape(), dtype)),
      in_place_(out.dtype() == dtype) {}

void Result::store(bool accumulate) const {
  if (in_place_) return;
  if (accumulate) {
    kElementwise.accumulate(buffer_, out_);
  } else {
    kElementwise.cast(buffer_, out_);
  }
}

namespace {

std::int64_t rows_within(std::int64_t cache_bytes, std::int64_t rows, std::int64_t row_bytes,
                         std::int64_t stationary_bytes) {
  constexpr std::int64_t kPasses = 4;
  const std::int64_t budget = std::max(cache_bytes, kPasses * stationary_bytes);
  const std::int64_t chunks = std::clamp<std::int64_t>((rows * row_bytes + budget - 1) / budget, 1, rows);
  return (rows + chunks - 1) / chunks;
}

}  // namespace

std::int64_t chunk_rows(std::int64_t rows, std::int64_t row_bytes, std::int64_t stationary_bytes) {
  constexpr std::int64_t kSecondLevelBytes = std::int64_t{1} << 19;
  return rows_within(omp_get_max_threads() * kSecondLevelBytes, rows, row_bytes, stationary_bytes);
}

std::int64_t chunk_summed_rows(std::int64_t rows, std::int64_t row_bytes, std::int64_t stationary_bytes) {
  constexpr std::int64_t kThirdLevelBytes = std::int64_t{1} << 22;
  return rows_within(kThirdLevelBytes, rows, row_bytes, stationary_bytes);
}

}  // namespace lockstep::kernels::cpu
