// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/training_state.h"

#include "runtime/checkpoint/store.h"
#include "runtime/checkpoint/tensor_match.h"
#include "runtime/job/model_options.h"
#include "runtime/job/precision.h"
#include "runtime/tensor/error.h"

namespace lockstep::train {

namespace {

constexpr std::string_view kOptimizerPrefix = "optimizer/";

/// "digits" with model convnet
std::string title(const job::Job& job) { return "\"" + job.name() + "\" with model " + job::model_kind(job.model()); }

bool is_optimizer(const std::string& name) { return name.starts_with(kOptimizerPrefix); }

}  // namespace

std::map<std::string, Tensor> state_tensors(Network& network) {
  std::map<std::string, Tensor> tensors;
  const nn::Arena& arena = network.arena();
  const auto optimizer_state = network.optimizer().state();
  std::int64_t number = 0;
  for (const nn::Arena::Slot& slot : arena.slots()) {
    tensors[std::string(kOptimizerPrefix) + "step/" + slot.parameter.name] =
        network.optimizer().parameter_steps().rows(number, number + 1);
    ++number;
    tensors["model/" + slot.parameter.name] = arena.master(slot);
    for (const auto& [name, flat] : optimizer_state) {
      tensors[std::string(kOptimizerPrefix) + name + "/" + slot.parameter.name] =
          flat.rows(slot.begin, slot.end).reshaped(slot.parameter.tensor.shape());
    }
  }
  for (const auto& [name, statistics] : arena.statistics()) tensors["statistics/" + name] = statistics->committed();
  return tensors;
}

std::map<std::string, Tensor> host_copies(const std::map<std::string, Tensor>& tensors) {
  std::map<std::string, Tensor> copies;
  for (const auto& [name, tensor] : tensors) copies[name] = tensor.to(kCpu);
  return copies;
}

void restore_tensors(Network& network, const checkpoint::Checkpoint& saved, bool with_optimizer) {
  std::map<std::string, Tensor> targets = state_tensors(network);
  std::map<std::string, Tensor> found = saved.tensors;
  if (!with_optimizer) {
    std::erase_if(targets, [](const auto& entry) { return is_optimizer(entry.first); });
    std::erase_if(found, [](const auto& entry) { return is_optimizer(entry.first); });
  }
  std::map<std::string, checkpoint::TensorSpec> expected;
  for (const auto& [name, tensor] : targets) expected[name] = {tensor.dtype(), tensor.shape()};
  checkpoint::require_match(expected, found, saved.path);
  for (const auto& [name, tensor] : targets) tensor.copy_from(found.at(name));
  network.arena().refresh_copies();
}

void broadcast_optimizer(optim::Optimizer& optimizer, comm::Communicator& communicator) {
  const Stream here = Stream::calling_thread();
  for (const auto& [name, tensor] : optimizer.state()) {
    communicator.broadcast(tensor, 0, Stream::current(tensor.device()));
  }
  const Tensor& parameter_steps = optimizer.parameter_steps();
  communicator.broadcast(parameter_steps, 0, Stream::current(parameter_steps.device()));
  const Tensor steps = Tensor::from<std::int64_t>({optimizer.applied_steps()}, {1});
  communicator.broadcast(steps, 0, here);
  optimizer.set_applied_steps(steps.as<std::int64_t>()[0]);
}

void require_resumable(const checkpoint::Checkpoint& saved, const job::Job& job, const std::string& optimizer) {
  const checkpoint::TrainingState& state = saved.state;
  if (state.optimizer() != optimizer) {
    throw UsageError(saved.path + " was saved with optimizer " + state.optimizer() + ", the job names " + optimizer,
                     "Resume with the same optimizer, or start anew with --resume never.");
  }
  if (state.sampler().seed() != job.seed() && state.sampler().cursor() > 0) {
    const std::string seed = std::to_string(state.sampler().seed());
    throw UsageError(saved.path + " lies in the middle of an epoch whose samples are ordered by seed " + seed +
                         ", the job's seed is " + std::to_string(job.seed()),
                     "Resume with --set seed=" + seed + ", or start anew with --resume never.");
  }
}

void restore_for(const job::Job& job, const checkpoint::Checkpoint& saved, const std::function<void()>& restore) {
  try {
    restore();
  } catch (const UsageError&) {
    const std::string theirs = title(saved.state.job());
    const std::string ours = title(job);
    if (theirs == ours) throw;
    throw UsageError(saved.path + " was saved by another job, " + theirs + ", and this one is " + ours,
                     "Choose another --run-dir, or start anew in this one with --resume never.");
  }
}

checkpoint::ScalerState to_message(const amp::GradScalerState& state) {
  checkpoint::ScalerState message;
  message.set_enabled(true);
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

amp::GradScalerState scaler_state(const checkpoint::TrainingState& saved, const job::Job& job) {
  const checkpoint::ScalerState& scaler = saved.scaler();
  if (!scaler.enabled()) return {};
  amp::GradScalerState state{.scale = scaler.scale(),
                             .growth_factor = scaler.growth_factor(),
                             .backoff_factor = scaler.backoff_factor(),
                             .growth_interval = scaler.growth_interval(),
                             .growth_tracker = scaler.growth_tracker(),
                             .consecutive_skips = scaler.consecutive_skips(),
                             .skipped_steps = scaler.skipped_steps()};
  const job::Amp& before = saved.job().amp();
  if (before.dtype() != job.amp().dtype() || !before.loss_scale().dynamic()) {
    state.scale = static_cast<float>(job.amp().loss_scale().init());
    state.growth_tracker = 0;
  }
  return state;
}

checkpoint::Checkpoint find_checkpoint(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) {
    throw StorageError("no checkpoint at " + path.string() + ": there is no such directory",
                       "Name a checkpoint, or a run directory that has one.");
  }
  if (std::filesystem::exists(path / "manifest.json") || std::filesystem::exists(path / "tensors.safetensors")) {
    return checkpoint::Store(path.parent_path().string()).load(path.string());
  }
  const std::filesystem::path inside = path / "checkpoints";
  auto newest = checkpoint::Store((std::filesystem::is_directory(inside) ? inside : path).string()).latest();
  if (!newest) {
    throw StorageError("no checkpoint in " + path.string(), "Name a checkpoint, or a run directory that has one.");
  }
  return std::move(*newest);
}

}  // namespace lockstep::train
