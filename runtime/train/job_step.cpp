// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/job_step.h"

#include "runtime/base/error.h"
#include "runtime/job/training_options.h"

namespace lockstep::train {

namespace {

step::Graph graph_of(const job::Train& train, Device device) {
  require_graph_device(train, device);
  if (train.cuda_graph() == job::OFF) return step::Graph::kOff;
  return train.cuda_graph() == job::ON ? step::Graph::kOn : step::Graph::kAuto;
}

/// Behind the DistributedDataParallel that gives every rank the same weights.
std::optional<optim::WeightMean> mean_of(const job::Train& train, optim::Optimizer& optimizer) {
  if (!train.has_ema()) return std::nullopt;
  return std::optional<optim::WeightMean>(std::in_place, optimizer, job::weight_mean_options(train.ema()));
}

std::vector<step::StepObserver*> all_of(step::StepObserver* status, step::StepObserver* faults,
                                        const std::vector<step::StepObserver*>& others) {
  std::vector<step::StepObserver*> all{status, faults};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace

void require_graph_device(const job::Train& train, Device device) {
  if (train.cuda_graph() != job::ON || device != kCpu) return;
  throw FieldError("train.cuda_graph", "ON needs a GPU, but this run is on the CPU", "Leave it at AUTO.");
}

optim::Schedule schedule_of(const job::Job& job) {
  return {job::schedule_options(job.schedule()), job::learning_rate_of(job.optimizer()),
          static_cast<std::int64_t>(job.train().steps())};
}

JobStep::JobStep(const job::Job& job, comm::World& world, Network& network, RankStatus& status,
                 const std::vector<step::StepObserver*>& observers)
    : faults_(job, world.rank(), world.size(), network.arena()),
      ddp_(network.model(), world, job::ddp_options(job.comm())),
      scaler_(world, job::grad_scaler_options(job.amp().loss_scale())),
      mean_(mean_of(job.train(), network.optimizer())),
      step_(ddp_, network.optimizer(), scaler_,
            [this, &network](const Tensor& output, const Tensor& target, const ops::LossOptions& options) {
              return faults_.in_loss(network.task().loss(output, target, options.divisor, options.sample_weight));
            },
            {.graph = graph_of(job.train(), network.device()),
             .observers = all_of(&status, &faults_, observers),
             .mean = mean(),
             .rank_numbers = network.device() == kCpu && world.size() > 1 ? &rank_waits_ : nullptr}),
      schedule_(schedule_of(job)) {}

}  // namespace lockstep::train
