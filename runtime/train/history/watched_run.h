// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/train/record/progress_line.h"

namespace lockstep::train {

/// The state of a run that is followed by its lines. Times are those of the lines, so that it is right whenever it is
/// read.
class WatchedRun {
 public:
  /// A line of metrics.jsonl, in their order.
  void add(const nlohmann::ordered_json& line);
  void set_steps(std::uint64_t steps) { steps_ = steps; }

  /// The last step, with the time left by the pace of the last minutes. `steps` 0: not known.
  ProgressState progress() const;
  double lr() const { return lr_; }
  double last_time() const { return last_time_; }
  bool has_step() const { return progress_.step > 0; }
  /// The event of the end; null while steps go on.
  const nlohmann::ordered_json& end() const { return end_; }

 private:
  void add_step(const nlohmann::ordered_json& line, double time);

  ProgressState progress_;
  std::uint64_t steps_ = 0;
  double lr_ = 0.0;
  double last_time_ = 0.0;
  double first_time_ = 0.0;
  bool scale_changes_ = false;
  std::deque<std::pair<double, std::uint64_t>> pace_;  ///< times of steps
  nlohmann::ordered_json end_;
};

}  // namespace lockstep::train
