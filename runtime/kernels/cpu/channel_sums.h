// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/kernels/cpu/parallel.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels::cpu {

/// The partial results of a loop over [rows, channels], by chunks of the rows: `kinds` arrays of [channels] for each
/// chunk. The chunks do not depend on the number of threads.
class ChannelPartials {
 public:
  ChannelPartials(std::int64_t rows, std::int64_t channels, std::int64_t kinds)
      : rows_(rows),
        channels_(channels),
        kinds_(kinds),
        chunk_rows_(std::max(kChunkRows, kChunkElements / std::max<std::int64_t>(channels, 1))),
        values_(Tensor::empty({chunks(), kinds, channels}, DType::kFloat32)) {}

  std::int64_t chunks() const { return (rows_ + chunk_rows_ - 1) / chunk_rows_; }
  std::int64_t chunk_rows(std::int64_t chunk) const { return std::min(chunk_rows_, rows_ - chunk * chunk_rows_); }
  float* at(std::int64_t chunk, std::int64_t kind) const {
    return static_cast<float*>(values_.data()) + (chunk * kinds_ + kind) * channels_;
  }

  /// Calls f(chunk, first_element, rows) for every chunk, in parallel.
  template <class F>
  void fill(F f) const {
    parallel_ranges(chunks(), kGrainElements / kChunkElements, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = begin; c < end; ++c) f(c, c * chunk_rows_ * channels_, chunk_rows(c));
    });
  }

  /// The sums of one kind over all chunks, in order.
  std::vector<double> totals(std::int64_t kind) const {
    std::vector<double> sums(static_cast<std::size_t>(channels_), 0.0);
    for (std::int64_t chunk = 0; chunk < chunks(); ++chunk) {
      const float* values = at(chunk, kind);
      for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += static_cast<double>(values[c]);
    }
    return sums;
  }

 private:
  // Rows few enough for sums in float32, and many enough to make combining the chunks cheap.
  static constexpr std::int64_t kChunkRows = 256;
  static constexpr std::int64_t kChunkElements = 32768;

  std::int64_t rows_;
  std::int64_t channels_;
  std::int64_t kinds_;
  std::int64_t chunk_rows_;
  Tensor values_;
};

/// Stores one double for each channel in a float32 tensor.
inline void round_to_float(const std::vector<double>& values, const Tensor& out) {
  std::ranges::transform(values, static_cast<float*>(out.data()),
                         [](double value) { return static_cast<float>(value); });
}

}  // namespace lockstep::kernels::cpu
