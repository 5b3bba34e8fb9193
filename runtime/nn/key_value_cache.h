// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace lockstep::nn {

/// Keys and values of the positions that one attention has seen: [N, kv_heads, T, channels] each, undefined before the
/// first.
struct KeyValues {
  Tensor keys;
  Tensor values;

  std::int64_t length() const { return keys.defined() ? keys.size(2) : 0; }
};

/// The keys and values that a model keeps of a text, so that each further token costs one position: one entry a layer.
/// Empty before the first forward pass, which gives it its layers.
struct KeyValueCache {
  std::vector<KeyValues> layers;

  /// Positions so far.
  std::int64_t length() const { return layers.empty() ? 0 : layers.back().length(); }
};

}  // namespace lockstep::nn
