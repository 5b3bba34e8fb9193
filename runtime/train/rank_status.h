// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/step/step_observer.h"
#include "runtime/train/record/status_board.h"

namespace lockstep::train {

/// A rank's own line of the launcher's status board.
class RankStatus final : public step::StepObserver {
 public:
  explicit RankStatus(int rank) : board_(StatusBoard::from_environment()), rank_(rank) {}

  void set(RankPhase phase, std::uint64_t step) const { board_.set(rank_, phase, step); }
  /// Whether a launcher of ours has started this process.
  bool is_read() const { return board_.ranks() > 0; }

  void step_begins(std::uint64_t step) override { set(RankPhase::kForward, step); }
  void phase_begins(step::Phase phase, std::uint64_t step, std::uint32_t micro_batch) override;

 private:
  StatusBoard board_;
  int rank_;
};

}  // namespace lockstep::train
