// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "configs/job.pb.h"

namespace lockstep::optim {

/// The learning rate as a function of the applied steps: a skipped step does not advance it.
class Schedule {
 public:
  /// `schedule` as resolved; `total_steps` is where cosine and linear end.
  Schedule(const job::Schedule& schedule, double base_lr, std::int64_t total_steps);

  /// The rate of the step that follows `applied_steps` applied ones.
  double learning_rate(std::int64_t applied_steps) const;

  /// The rates of all steps, for Optimizer::set_learning_rates. Throws UsageError for more than 2^24 of them.
  std::vector<float> table() const;

 private:
  job::Schedule schedule_;
  double base_lr_;
  std::int64_t total_steps_;
};

}  // namespace lockstep::optim
