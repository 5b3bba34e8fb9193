// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::nn {

/// A batch norm's running mean and variance, float32 [2, C]. A training forward pass leaves what they would become as
/// pending; they change only when the step is accepted.
class RunningStatistics {
 public:
  explicit RunningStatistics(std::int64_t channels);

  /// The accepted statistics; row 0 the mean, row 1 the unbiased variance.
  const Tensor& committed() const { return committed_; }
  /// What the next forward pass of an accumulation cycle builds on: the pending ones, or the accepted ones.
  const Tensor& latest() const { return pending_.defined() ? pending_ : committed_; }
  void set_pending(const Tensor& next) { pending_ = next; }
  /// Moves the accepted statistics; there must be no pending ones.
  void move_to(Device device) { committed_ = committed_.to(device); }
  /// Accepts the pending statistics unless *found_inf (on the device; null: 0) is non-zero; forgets them either way.
  void commit(const float* found_inf = nullptr);

 private:
  Tensor committed_;
  Tensor pending_;
};

}  // namespace lockstep::nn
