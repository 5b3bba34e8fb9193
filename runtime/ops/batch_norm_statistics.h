// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/ops/batch_norm.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// The statistics with which batch norm normalises.
struct Statistics {
  Tensor mean;     ///< [C]
  Tensor inv_std;  ///< [C], 1 / sqrt(variance + epsilon)
  Tensor count;    ///< scalar, the rows of all ranks; undefined where the statistics are constants
};

/// The statistics of the batch norms of a forward pass, in the order of their calls, for a second run of the same pass:
/// it normalises with them, computes none and asks no other rank. Holds for the thread that makes it, while it lives.
class [[nodiscard]] KeptStatistics {
 public:
  enum class Use : std::uint8_t {
    kKeep,  ///< the first run: adds them to the list
    kTake,  ///< the second run: takes them from it
  };
  /// `list` outlives this.
  [[nodiscard]] KeptStatistics(Use use, std::vector<Statistics>& list);
  ~KeptStatistics();
  KeptStatistics(const KeptStatistics&) = delete;
  KeptStatistics& operator=(const KeptStatistics&) = delete;

  /// The statistics of the next call of a batch norm: from the list, or from `compute`. Throws UsageError for a second
  /// run that calls more of them.
  static Statistics next(const std::function<Statistics()>& compute);

 private:
  Statistics here(const std::function<Statistics()>& compute);

  Use use_;
  std::vector<Statistics>& list_;
  std::size_t at_ = 0;
  KeptStatistics* outer_;
};

/// The statistics of the rows of x on all ranks, in `dtype`, outside the graph. next_running as in batch_norm(); it
/// stays as it is where the statistics come from KeptStatistics.
[[nodiscard]] Statistics statistics_of(const Tensor& x, DType dtype, const Tensor& running, const Tensor& next_running,
                                       const BatchNormOptions& options);
/// The running statistics as constants.
[[nodiscard]] Statistics statistics_of_running(const Tensor& running, const BatchNormOptions& options);

/// The statistics of x as results of an operation on x, so that a value computed with them can be differentiated by x.
[[nodiscard]] Statistics in_graph_of(const Tensor& x, const Statistics& statistics, StatisticsReducer* reducer);
/// a [C] and b [C], each summed over the ranks, in one collective; a and b themselves without a reducer. The gradient
/// is the sum of the ranks' gradients likewise: another collective on every rank.
[[nodiscard]] std::array<Tensor, 2> sum_over_ranks(const Tensor& a, const Tensor& b, StatisticsReducer* reducer);

}  // namespace lockstep::ops
