// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// Rows of weight [rows, width] by number: int64 indices of any shape -> [indices..., width], in weight's dtype. The
/// gradient is dense; the rows that meet in one are added in the order of the indices, whatever the number of threads.
/// Row `padding_index` (from the end where negative) gets none. An index outside [0, rows) is a UsageError on the CPU;
/// a GPU, for which nobody waits, gives NaN.
[[nodiscard]] Tensor embedding(const Tensor& weight, const Tensor& indices,
                               std::optional<std::int64_t> padding_index = {});

}  // namespace lockstep::ops
