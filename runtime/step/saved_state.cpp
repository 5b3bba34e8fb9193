// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/saved_state.h"

#include "comm/ddp/bucket_plan.h"
#include "comm/ddp/digest.h"
#include "runtime/job/precision.h"

namespace lockstep::step {

namespace {

checkpoint::ScalerState to_message(const amp::GradScalerState& state) {
  checkpoint::ScalerState message;
  message.set_enabled(!state.empty());
  message.set_scale(state.scale);
  message.set_growth_factor(state.growth_factor);
  message.set_backoff_factor(state.backoff_factor);
  message.set_growth_interval(state.growth_interval);
  message.set_growth_tracker(state.growth_tracker);
  message.set_consecutive_skips(state.consecutive_skips);
  message.set_skipped_steps(state.skipped_steps);
  return message;
}

checkpoint::BucketPlan to_message(const comm::BucketPlan& plan) {
  checkpoint::BucketPlan message;
  for (const comm::Bucket& bucket : plan.buckets) {
    checkpoint::BucketPlan::Bucket& entry = *message.add_bucket();
    entry.set_begin(static_cast<std::uint64_t>(bucket.begin));
    entry.set_end(static_cast<std::uint64_t>(bucket.end));
  }
  for (const std::string& parameter : plan.parameters) message.add_parameter(parameter);
  message.set_wire_dtype(job::precision_of(plan.wire_dtype));
  return message;
}

}  // namespace

checkpoint::TrainingState describe(const Progress& progress, comm::DistributedDataParallel& ddp,
                                   const optim::Optimizer& optimizer, const amp::GradScaler& scaler) {
  const nn::Arena& arena = optimizer.arena();
  checkpoint::TrainingState state;
  state.set_lockstep_version(LOCKSTEP_VERSION);
  state.set_step(progress.step);
  state.set_applied_steps(static_cast<std::uint64_t>(optimizer.applied_steps()));
  state.set_epoch(progress.sampler.epoch);
  state.mutable_sampler()->set_epoch(progress.sampler.epoch);
  state.mutable_sampler()->set_cursor(static_cast<std::uint64_t>(progress.sampler.cursor));
  *state.mutable_scaler() = to_message(scaler.state_dict());
  state.mutable_schedule()->set_applied_steps(state.applied_steps());
  state.mutable_schedule()->set_last_learning_rate(static_cast<float>(optimizer.learning_rate()));
  *state.mutable_bucket_plan() = to_message(comm::describe_plan(ddp.reducer().buckets(), arena));
  state.set_world_size(static_cast<std::uint32_t>(ddp.communicator().size()));
  state.set_optimizer(optimizer.name());
  state.set_weights_digest(comm::weights_digest(arena));
  return state;
}

Progress progress_of(const checkpoint::TrainingState& saved) {
  return {saved.step(), {saved.sampler().epoch(), static_cast<std::int64_t>(saved.sampler().cursor())}};
}

amp::GradScalerState scaler_of(const checkpoint::TrainingState& saved) {
  const checkpoint::ScalerState& scaler = saved.scaler();
  if (!scaler.enabled()) return {};
  return {.scale = scaler.scale(),
          .growth_factor = scaler.growth_factor(),
          .backoff_factor = scaler.backoff_factor(),
          .growth_interval = scaler.growth_interval(),
          .growth_tracker = scaler.growth_tracker(),
          .consecutive_skips = scaler.consecutive_skips(),
          .skipped_steps = scaler.skipped_steps()};
}

}  // namespace lockstep::step
