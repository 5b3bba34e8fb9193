// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "runtime/train/metrics.h"

namespace lockstep::train {

/// What a person sees: a bar on a terminal, a line now and then otherwise. Rank 0 only.
class Progress {
 public:
  Progress(std::uint64_t steps, std::uint32_t log_every, bool shown);

  void step(const StepReport& report);
  void evaluation(std::uint64_t step, const EvalResult& result);
  /// A line of its own, below the bar.
  void note(const std::string& text);

 private:
  void clear_bar();

  std::uint64_t steps_;
  std::uint32_t log_every_;
  bool shown_;
  bool terminal_;
  bool bar_drawn_ = false;
  std::chrono::steady_clock::time_point last_drawn_;
};

}  // namespace lockstep::train
