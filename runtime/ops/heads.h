// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/tensor/tensor.h"

// Between the channels of a sequence and the heads of attention. Any dtype; a gradient flows through floating ones. The
// two are each other's inverse and gradient.

namespace lockstep::ops {

/// x [N, T, C] -> [N, heads[i], T, channels] for each i: heads lie one behind the other along C, so that one projection
/// makes queries, keys and values. Throws ShapeError unless C is the sum of the heads times `channels`.
[[nodiscard]] std::vector<Tensor> split_heads(const Tensor& x, const std::vector<std::int64_t>& heads,
                                              std::int64_t channels);
/// Each [N, heads, T, channels], with any number of heads -> [N, T, all heads * channels].
[[nodiscard]] Tensor join_heads(const std::vector<Tensor>& heads);

}  // namespace lockstep::ops
