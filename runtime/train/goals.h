// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/optim/reduce_on_plateau.h"
#include "runtime/train/improvement.h"

namespace lockstep::checkpoint {
struct Checkpoint;
class TrainingState;
}  // namespace lockstep::checkpoint

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

/// The decisions that a run takes from its evaluations: which checkpoint is the best one, when to end early, and when
/// to reduce the learning rate. Alike on every rank, since all have the same results.
class Goals {
 public:
  explicit Goals(const job::Job& job);

  /// Those that a job can name: "eval.loss", "eval.accuracy". `metrics`: EvalMetrics::metrics_of().
  static std::vector<std::string> names_of(const std::vector<std::string>& metrics);
  /// Throws FieldError where the job names a metric that an evaluation does not give. `metrics`:
  /// EvalMetrics::metrics_of().
  static void require_known(const job::Job& job, const std::vector<std::string>& metrics);

  /// Whether anything depends on the evaluations.
  bool any() const { return best_ || patient_ || plateau_; }
  /// Takes in the evaluation behind `step`. Whether the weights are the best so far, for a run that keeps those.
  bool add(std::uint64_t step, const EvalResult& result);
  /// The last one that was taken in; 0: none.
  std::uint64_t evaluated_step() const { return evaluated_step_; }
  /// "eval.accuracy" and its best value, of a run that keeps the best checkpoint.
  const Improvement& best() const { return *best_; }

  /// Whether the run is to end early.
  bool reached() const { return patient_ && patient_->evaluations_since() >= patience_; }
  /// Why: "eval.loss has not improved on 0.4312 for 5 evaluations"
  std::string reason() const;

  /// How often the learning rate was reduced so far.
  std::int64_t reductions() const { return plateau_ ? plateau_->state().reductions : 0; }
  /// Why it was reduced last: "eval.loss has not improved on 0.4312 for 11 evaluations"
  std::string reason_to_reduce() const;

  /// Throws StorageError where the checkpoint lacks what its job followed and `job` follows on, which would begin anew.
  static void require_saved(const checkpoint::Checkpoint& saved, const job::Job& job);
  void save(checkpoint::TrainingState& state) const;
  /// Goes on from there. What was saved of another metric is left alone, but for the count of reductions: the rate
  /// stays reduced.
  void load(const checkpoint::TrainingState& state);

 private:
  std::optional<Improvement> best_;
  std::optional<Improvement> patient_;
  std::uint32_t patience_ = 0;
  std::optional<optim::ReduceOnPlateau> plateau_;
  std::uint64_t evaluated_step_ = 0;
};

}  // namespace lockstep::train
