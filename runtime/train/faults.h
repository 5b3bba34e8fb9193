// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/job/job.h"
#include "runtime/nn/arena.h"
#include "runtime/step/step_observer.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::train {

/// Throws FieldError for a fault in a parameter that the model does not have or on a rank that there is not. It is the
/// job's fault[index].
void require_possible(const job::Fault& fault, int index, const std::vector<std::string>& parameters, int world_size);

/// The faults that a job asks for on this rank, for tests and rehearsals. None in a run that the launcher restarted.
class Faults final : public step::StepObserver {
 public:
  /// Throws as require_possible() does.
  Faults(const job::Job& job, int rank, int world_size, const nn::Arena& arena);

  /// Kills, stops or delays this rank where a fault names this phase of the current step.
  void at(job::Phase phase) const;
  /// The loss of the current micro-batch, or NaN in its place.
  Tensor in_loss(const Tensor& loss) const;

  void step_begins(std::uint64_t step) override { enter(step, 0); }
  /// Where a fault is planned at the step, on any rank: it strikes one step, which no captured one knows of.
  bool needs_phases(std::uint64_t step) const override;
  void phase_begins(step::Phase phase, std::uint64_t step, std::uint32_t micro_batch) override;
  /// Overflow and nan write into the gradient; backward and all-reduce begin here.
  void gradient_ready(std::size_t slot) override;
  /// Flips a bit of a weight.
  void step_ends(std::uint64_t step) override;

 private:
  struct Planned {
    job::Fault::KindCase kind;
    job::FaultPoint point;
    std::size_t slot;
  };
  void enter(std::uint64_t step, std::uint32_t micro_batch);
  bool now(const Planned& fault) const;
  static void poison(const Tensor& gradient, float value);

  const nn::Arena& arena_;
  std::vector<Planned> planned_;      ///< on this rank
  std::vector<std::uint64_t> steps_;  ///< of all faults
  std::uint64_t step_ = 0;
  std::uint32_t micro_batch_ = 0;
  std::uint32_t last_micro_batch_ = 0;
};

}  // namespace lockstep::train
