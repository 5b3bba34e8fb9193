// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/kernels/attention_dropout.h"
#include "runtime/kernels/cpu/loops/elements.h"

// A head of an attention as its loops see it.

namespace lockstep::kernels::cpu {

/// Rows of a head, `step` elements from one to the next.
struct InputRows {
  Input data;
  std::int64_t step;

  Input operator[](std::int64_t row) const { return data.from(row * step); }
};
struct OutputRows {
  Output data;
  std::int64_t step;

  Output operator[](std::int64_t row) const { return data.from(row * step); }
};

/// One head of an attention. Its queries [queries, channels], keys [keys, channels], values [keys, value_channels].
struct AttentionHead {
  /// A block of queries, and of keys: their scores and the rows that they are made of fit the caches.
  static constexpr std::int64_t kQueries = 64;
  static constexpr std::int64_t kKeys = 96;
  /// Floats that one call may use beside its results, whatever the numbers of queries and keys.
  static std::int64_t scratch(std::int64_t channels, std::int64_t value_channels) {
    return 3 * kKeys * kQueries + 6 * (kQueries + kKeys) * (channels + value_channels + 16);
  }

  InputRows q, k, v;
  std::int64_t queries, keys, channels, value_channels;
  float scale;
  bool causal;
  // The mask of query i and key j lies at i * mask_step + j of `allowed` or of `bias`, or there is none.
  const bool* allowed;
  Input bias;
  std::int64_t mask_step;
  /// Its first element is that of query 0 and key 0 of this head; the key's position is added already.
  AttentionDropout dropout;
};

/// The further inputs of a head's backward pass, and its results, each written where its data is not null.
struct AttentionGradients {
  InputRows out, dout;
  const float* norms;
  OutputRows dq;
  // dk [keys, channels] and dv [keys, value_channels], which are added to. Lines are padded to a multiple of 16.
  float* dk;
  float* dv;
};

/// Queries [first, first + count) of a head beside its first `keys` keys: rows of `keys` numbers that follow one
/// another.
struct AttentionRows {
  std::int64_t first, count, keys;

  /// Floats that a call may use beside its results.
  static std::int64_t room(std::int64_t keys, std::int64_t value_channels) {
    return std::max(keys, 2 * value_channels);
  }
};

/// The inputs of the backward pass of these queries.
struct AttentionRowSlopes {
  Input out, dout;       ///< their rows, which follow one another
  const float* norms;    ///< their pairs
  float* probabilities;  ///< slopes of the probabilities, dout . v, as AttentionRows; they are overwritten
};

}  // namespace lockstep::kernels::cpu
