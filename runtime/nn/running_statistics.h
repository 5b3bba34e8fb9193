// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/tensor/tensor.h"

namespace lockstep::nn {

/// A batch norm's running mean and variance, float32 [2, C]. A training forward pass leaves what they would become as
/// pending; they change only when the step is accepted.
class RunningStatistics {
 public:
  explicit RunningStatistics(std::int64_t channels);

  /// The accepted statistics; row 0 the mean, row 1 the unbiased variance.
  const Tensor& committed() const { return committed_; }
  /// The statistics from which the next forward pass of an accumulation cycle goes on: the pending ones, or the
  /// accepted ones where none are pending or where the accepted ones were written since (loaded).
  const Tensor& latest() const { return has_pending() ? pending_ : committed_; }
  void set_pending(const Tensor& next) {
    pending_ = next;
    base_ = committed_.version();
  }
  /// Moves the accepted statistics; there must be no pending ones.
  void move_to(Device device) { committed_ = committed_.to(device); }
  /// Accepts the pending statistics unless *found_inf (on the device; null: 0) is non-zero; forgets them either way.
  void commit(const float* found_inf = nullptr);

 private:
  bool has_pending() const { return pending_.defined() && base_ == committed_.version(); }

  Tensor committed_;
  Tensor pending_;
  std::uint64_t base_ = 0;  ///< the version of the accepted statistics that the pending ones go on from
};

}  // namespace lockstep::nn
