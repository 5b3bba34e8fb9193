// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configs/job.pb.h"
#include "runtime/nn/arena.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::train {

/// Throws FieldError for a fault in a parameter that the model does not have or on a rank that there is not. It is the
/// job's fault[index].
void require_possible(const job::Fault& fault, int index, const std::vector<std::string>& parameters, int world_size);

/// The faults that a job asks for on this rank, for tests and rehearsals. None in a run that the launcher restarted.
class Faults {
 public:
  /// Throws as require_possible() does.
  Faults(const job::Job& job, int rank, int world_size, const nn::Arena& arena);

  /// Whether a fault is planned at the step, on any rank.
  bool planned_at(std::uint64_t step) const;
  /// Where the run stands; `micro_batch` counts from 0 within the step.
  void enter(std::uint64_t step, std::uint32_t micro_batch);
  /// Kills, stops or delays this rank where a fault names this phase of the current step.
  void at(job::Phase phase) const;
  /// A parameter's gradient is complete: overflow and nan write into it; backward and all-reduce begin here.
  void on_gradient(std::size_t slot) const;
  /// The factor that a fault in the loss multiplies it with: NaN or 1.
  double loss_factor() const;
  /// Flips a bit of a weight, after the step.
  void after_step() const;

 private:
  struct Planned {
    job::Fault::KindCase kind;
    job::FaultPoint point;
    std::size_t slot;
  };
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
