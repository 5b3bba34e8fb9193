// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/training_state.h"

#include "runtime/base/error.h"
#include "runtime/checkpoint/bundle.h"
#include "runtime/checkpoint/store.h"
#include "runtime/data/sampler.h"
#include "runtime/job/model_options.h"
#include "runtime/step/saved_state.h"

namespace lockstep::train {

namespace {

/// "digits" with model convnet
std::string title(const job::Job& job) { return "\"" + job.name() + "\" with model " + job::model_kind(job.model()); }

}  // namespace

void require_resumable(const checkpoint::Checkpoint& saved, const job::Job& job, const std::string& optimizer) {
  const checkpoint::TrainingState& state = saved.state;
  const std::string before = state.optimizer_size() == 1 ? state.optimizer(0) : "several or none";
  if (before != optimizer) {
    throw UsageError(saved.path + " was saved with optimizer " + before + ", the job names " + optimizer,
                     "Resume with the same optimizer, or start anew with --resume never.");
  }
  const data::SamplerState sampler = step::progress_of(state).sampler;
  if (!data::goes_on(sampler, job.seed())) {
    const std::string seed = std::to_string(*sampler.seed);
    throw UsageError(saved.path + " lies in the middle of an epoch whose samples are ordered by seed " + seed +
                         ", the job's seed is " + std::to_string(job.seed()),
                     "Resume with --set seed=" + seed + ", or start anew with --resume never.");
  }
}

void restore_for(const job::Job& job, const checkpoint::Checkpoint& saved, const std::function<void()>& restore) {
  try {
    restore();
  } catch (const UsageError&) {
    if (!saved.state.has_job()) throw;
    const std::string theirs = title(saved.state.job());
    const std::string ours = title(job);
    if (theirs == ours) throw;
    throw UsageError(saved.path + " was saved by another job, " + theirs + ", and this one is " + ours,
                     "Choose another --run-dir, or start anew in this one with --resume never.");
  }
}

amp::GradScalerState scaler_state(const checkpoint::TrainingState& saved, const job::Job& job) {
  amp::GradScalerState state = step::state_of(saved.scaler(0));
  if (state.empty() || !saved.has_job()) return state;
  const job::Amp& before = saved.job().amp();
  if (before.dtype() != job.amp().dtype() || !before.loss_scale().dynamic()) {
    state.scale = static_cast<float>(job.amp().loss_scale().init());
    state.growth_tracker = 0;
  }
  return state;
}

checkpoint::Checkpoint find_checkpoint(const std::filesystem::path& path) {
  if (checkpoint::is_bundle(path) && std::filesystem::is_regular_file(path)) {
    return checkpoint::read_checkpoint(path.string());
  }
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
