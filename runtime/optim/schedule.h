// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "configs/job.pb.h"

namespace lockstep::optim {

/// The learning rate as a function of the applied steps: a skipped step does not advance it.
class Schedule {
 public:
  /// `schedule` as resolved; `total_steps` is where cosine and linear end.
  Schedule(const job::Schedule& schedule, double base_lr, std::int64_t total_steps);

  /// The rate of the step that follows `applied_steps` applied ones.
  double learning_rate(std::int64_t applied_steps) const;

 private:
  job::Schedule schedule_;
  double base_lr_;
  std::int64_t total_steps_;
};

}  // namespace lockstep::optim
