// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "amp/grad_scaler/grad_scaler.h"
#include "comm/ddp/distributed_data_parallel.h"
#include "comm/group/world.h"
#include "runtime/job/job.h"
#include "runtime/optim/schedule.h"
#include "runtime/optim/weight_mean.h"
#include "runtime/step/training_step.h"
#include "runtime/train/faults.h"
#include "runtime/train/network.h"
#include "runtime/train/rank_status.h"

namespace lockstep::train {

/// Throws FieldError for train.cuda_graph: ON on a CPU.
void require_graph_device(const job::Train& train, Device device);

/// The job's learning rates. Throws FieldError for a schedule that the program has not registered.
optim::Schedule schedule_of(const job::Job& job);

/// The training step of a job: its network on all ranks, its loss scale, its learning rates and its faults.
class JobStep {
 public:
  /// A collective. `network`, `status` and the observers, which are told behind it, must outlive this. Throws as
  /// require_graph_device() does.
  JobStep(const job::Job& job, comm::World& world, Network& network, RankStatus& status,
          const std::vector<step::StepObserver*>& observers = {});
  JobStep(const JobStep&) = delete;
  JobStep& operator=(const JobStep&) = delete;

  comm::DistributedDataParallel& ddp() { return ddp_; }
  amp::GradScaler& scaler() { return scaler_; }
  const Faults& faults() const { return faults_; }
  step::TrainingStep& step() { return step_; }
  optim::Schedule& schedule() { return schedule_; }
  const optim::Schedule& schedule() const { return schedule_; }
  /// How long each rank waited for others in a step so far, in seconds; asked of StepsInFlight. Empty of a lone rank
  /// and on a GPU.
  step::RankNumbers& rank_waits() { return rank_waits_; }
  /// The mean of the weights; null where the job asks for none.
  optim::WeightMean* mean() { return mean_ ? &*mean_ : nullptr; }

 private:
  Faults faults_;
  comm::DistributedDataParallel ddp_;
  amp::GradScaler scaler_;
  std::optional<optim::WeightMean> mean_;
  step::RankNumbers rank_waits_;
  step::TrainingStep step_;
  optim::Schedule schedule_;
};

}  // namespace lockstep::train
