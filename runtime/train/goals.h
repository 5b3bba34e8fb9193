// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/train/improvement.h"

namespace lockstep::checkpoint {
struct Checkpoint;
class TrainingState;
}  // namespace lockstep::checkpoint

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

/// The decisions that a run takes from its evaluations: which checkpoint is the best one, and when to end early. Alike
/// on every rank, since all have the same results.
class Goals {
 public:
  explicit Goals(const job::Job& job);

  /// Throws FieldError where the job names a metric that an evaluation does not give. `metrics`:
  /// EvalMetrics::metrics_of().
  static void require_known(const job::Job& job, const std::vector<std::string>& metrics);

  /// Whether anything depends on the evaluations.
  bool any() const { return best_ || patient_; }
  /// Takes in the evaluation behind `step`. Whether the weights are the best so far, for a run that keeps those.
  bool add(std::uint64_t step, const EvalResult& result);
  /// The last one that was taken in; 0: none.
  std::uint64_t evaluated_step() const { return evaluated_step_; }
  /// "eval.accuracy" and its best value, of a run that keeps the best checkpoint.
  const Improvement& best() const { return *best_; }

  /// Whether the run is to end early.
  bool reached() const { return patient_ && patient_->evaluations_since() >= patience_; }
  /// "eval.loss has not improved on 0.4312 for 5 evaluations"
  std::string reason() const;

  /// Throws StorageError where the checkpoint lacks what its job followed and `job` follows on, which would begin anew.
  static void require_saved(const checkpoint::Checkpoint& saved, const job::Job& job);
  void save(checkpoint::TrainingState& state) const;
  void load(const checkpoint::TrainingState& state);

 private:
  std::optional<Improvement> best_;
  std::optional<Improvement> patient_;
  std::uint32_t patience_ = 0;
  std::uint64_t evaluated_step_ = 0;
};

}  // namespace lockstep::train
