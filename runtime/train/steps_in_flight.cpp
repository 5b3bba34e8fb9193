// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/steps_in_flight.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "runtime/tensor/trace_range.h"
#include "runtime/train/one_nan.h"

namespace lockstep::train {

using Clock = std::chrono::steady_clock;

StepsInFlight::StepsInFlight(Network& network, JobStep& step, comm::Communicator& communicator)
    : network_(network),
      step_(step),
      communicator_(communicator),
      readbacks_{step::Readback(network.device()), step::Readback(network.device())} {
  step_.rank_waits().mine = [this] {
    const auto waited = communicator_.waited();
    const auto before = steps_.back().waited;
    return waited && before ? std::chrono::duration<float>(*waited - *before).count() : 0.0f;
  };
  hand_out_rates();
}

void StepsInFlight::hand_out_rates() {
  // On a GPU nobody on the host knows how many steps were applied: it looks its rate up.
  if (network_.device() != kCpu) network_.optimizer().set_learning_rates(step_.schedule().table());
}

bool StepsInFlight::set_reductions(std::int64_t reductions) {
  if (step_.schedule().reductions() == reductions) return false;
  step_.schedule().set_reductions(reductions);
  hand_out_rates();
  return true;
}

void StepsInFlight::launch(std::uint64_t number, TrainingData& data, const std::function<bool()>& stop) {
  InFlight& step = steps_.emplace_back();
  step.waited = communicator_.waited();
  step.report.step = number;
  step.readback = &readbacks_[number % readbacks_.size()];
  step.report.queue_depth = data.ready();
  std::vector<data::Batch> micro_batches = data.next_step();
  for (data::Batch& batch : micro_batches) std::ranges::move(batch.unread, std::back_inserter(step.unread));
  step.report.epoch = micro_batches.back().epoch;
  step.report.samples = micro_batches.back().step_samples;
  step.report.data_seconds = std::chrono::duration<double>(Clock::now() - step.begin).count();
  const LaunchTimer timer;
  optim::Optimizer& optimizer = network_.optimizer();
  if (network_.device() == kCpu) {
    optimizer.set_learning_rate(step_.schedule().learning_rate(optimizer.applied_steps()));
  }
  step_.step().run(micro_batches, stop());
  step.readback->request(step_.step().device_outcome());
  step.launch = timer.stop();
}

StepsInFlight::Finished StepsInFlight::finish() {
  InFlight step = std::move(steps_.front());
  steps_.pop_front();
  Finished finished{step.report, outcome_of(*step.readback), std::move(step.unread)};
  const auto end = Clock::now();
  fill(finished.report, finished.outcome);
  if (network_.device() != kCpu) gpu_use_.count(step.launch);
  finished.report.seconds = std::chrono::duration<double>(end - std::max(step.begin, last_end_)).count();
  if (const auto waited = communicator_.waited(); waited && step.waited) {
    finished.report.rank_seconds = std::chrono::duration<double>(*waited - *step.waited).count();
  }
  finished.report.rank_waits = step_.rank_waits().all;
  last_end_ = end;
  return finished;
}

step::StepOutcome StepsInFlight::outcome_of(step::Readback& readback) const {
  std::optional<TraceRange> range;
  if (network_.device() != kCpu) range.emplace("wait for the device", RangeKind::kDevice);
  return readback.take();
}

void StepsInFlight::fill(StepReport& report, const step::StepOutcome& outcome) const {
  report.skipped = outcome.skipped();
  report.loss = one_nan(static_cast<double>(outcome.loss));
  report.lr = step_.schedule().learning_rate(outcome.schedule.applied_steps - (report.skipped ? 0 : 1));
  report.loss_scale = static_cast<double>(outcome.scale.used);
  report.next_loss_scale = static_cast<double>(outcome.scale.scale);
  report.applied_steps = static_cast<std::uint64_t>(outcome.schedule.applied_steps);
  report.skipped_steps = static_cast<std::uint64_t>(outcome.scale.skipped_steps);
  if (network_.optimizer().device_gradient_norm().defined())
    report.grad_norm = one_nan(static_cast<double>(outcome.grad_norm));
  if (!report.skipped) return;
  report.parameter = step_.step().bad_parameter(outcome);
  report.rank = outcome.verdict.rank;
}

std::optional<GpuSummary> StepsInFlight::gpu_summary() const {
  if (network_.device() == kCpu) return std::nullopt;
  return gpu_use_.summary(network_.device(), step_.step().graph_launches());
}

}  // namespace lockstep::train
