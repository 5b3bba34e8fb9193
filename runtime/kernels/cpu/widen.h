// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/tensor/tensor.h"

// How a primitive that computes in one dtype runs on tensors of another: 16-bit elements are widened to float32 chunk
// by chunk, each small enough to stay in the cache, and results are rounded once on their way out.

namespace lockstep::kernels::cpu {

/// `tensor` with its elements as `dtype`: itself where it has that dtype, undefined where it is undefined.
Tensor as_dtype(const Tensor& tensor, DType dtype);

/// The tensor into which a primitive that computes in `dtype` writes its results for `out`: `out` itself where it has
/// that dtype, else a buffer that store() converts.
class Result {
 public:
  Result(const Tensor& out, DType dtype);

  const Tensor& buffer() const { return buffer_; }
  /// Whether buffer() is `out` and holds its former values.
  bool in_place() const { return in_place_; }
  /// Brings the buffer to `out`, added to its former values when `accumulate`. In place, the primitive must have added.
  void store(bool accumulate) const;

 private:
  Tensor out_;
  Tensor buffer_;
  bool in_place_;
};

/// The number of rows in each of the nearly equal chunks of `rows`: so few that a chunk's float32 copies (`row_bytes` a
/// row) stay in the second-level caches. Data that every chunk reads anew (`stationary_bytes`) makes chunks longer, so
/// that reading it again stays cheap.
std::int64_t chunk_rows(std::int64_t rows, std::int64_t row_bytes, std::int64_t stationary_bytes);

/// As chunk_rows(), for rows that a sum runs over. The chunks decide how the sum rounds, so they depend on nothing but
/// these numbers. They fit a third-level cache, so that a chunk is work for several threads.
std::int64_t chunk_summed_rows(std::int64_t rows, std::int64_t row_bytes, std::int64_t stationary_bytes);

}  // namespace lockstep::kernels::cpu
