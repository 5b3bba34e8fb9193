// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/group/world.h"
#include "runtime/data/data_digest.h"
#include "runtime/data/loader.h"
#include "runtime/data/preparation.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

/// A job's data sets and, once it is known where the run begins, this rank's batches.
class TrainingData {
 public:
  /// Throws FieldError where the evaluation data do not fit what the model is trained on.
  explicit TrainingData(const job::Job& job);

  const data::DatasetPtr& train() const { return train_; }
  /// Null where the job has none.
  const data::DatasetPtr& eval() const { return eval_; }

  /// The digests of the data sets that the job has.
  std::vector<data::DataDigest> digests() const;
  /// What the model has to know of the training data once they are gone.
  const data::Preparation& preparation() const { return preparation_; }

  /// The next batches are those of step `first_step`, from `start` on. Before everything below. Data that are resident
  /// are loaded here, onto `device`: those of the run's first step.
  void begin(const job::Job& job, const comm::World& world, std::uint64_t first_step, const data::SamplerState& start,
             Device device);
  /// This rank's shares of the next step's micro-batches.
  std::vector<data::Batch> next_step();
  /// Batches that are decoded and wait for next_step().
  std::int64_t ready() const { return loader_ ? loader_->ready() : std::ssize(resident_->batches); }
  /// Where the step after the last one begins.
  data::SamplerState state() const { return loader_ ? loader_->state() : resident_->place; }
  std::int64_t steps_per_epoch() const {
    return loader_ ? loader_->steps_per_epoch() : resident_->sampler.steps_per_epoch();
  }

 private:
  std::vector<data::Batch> next_resident();

  data::DatasetPtr train_;
  data::DatasetPtr eval_;
  data::Preparation preparation_;
  std::uint32_t micro_batches_;
  /// Batches that every step takes. The place in the data goes on as if it were loaded.
  struct Resident {
    std::vector<data::Batch> batches;
    data::Sampler sampler;
    data::SamplerState place;
    std::uint64_t step;  ///< the next one
  };
  std::optional<data::Loader> loader_;
  std::optional<Resident> resident_;  ///< in place of the loader
};

}  // namespace lockstep::train
