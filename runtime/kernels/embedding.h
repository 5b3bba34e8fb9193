// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// Rows of a table by number: weight [rows, width], indices int64 of any shape. An index outside [0, rows) throws
/// UsageError that names its place and value; a GPU, for which nobody waits, gives a row of NaN and no gradient.
struct Embedding {
  /// This family's functions of the backend for tensors on `device`.
  static const Embedding& on(Device device);

  /// y [indices..., width] = weight[indices], of weight's dtype; zeros where the index is `skipped`; -1 skips none.
  void (*embedding)(const Tensor& weight, const Tensor& indices, std::int64_t skipped, const Tensor& y);
  /// dweight [rows, width], of any floating dtype, = the sums of the rows of dy with that index, in their order, added
  /// in float32 (float64 for float64 dy) and rounded once; rows without one, and row `skipped`, get zeros. When
  /// `accumulate` the sums are added to dweight, and the other rows stay.
  void (*embedding_backward)(const Tensor& dy, const Tensor& indices, std::int64_t skipped, bool accumulate,
                             const Tensor& dweight);
};

}  // namespace lockstep::kernels
