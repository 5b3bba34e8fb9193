// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "amp/grad_scaler/grad_scaler.h"
#include "runtime/job/job.h"
#include "runtime/step/saved_tensors.h"

namespace lockstep::checkpoint {
struct Checkpoint;
class TrainingState;
}  // namespace lockstep::checkpoint

namespace lockstep::train {

/// The checkpoint that `path` names: itself, a bundle, or the newest whole one of a run directory or a checkpoint
/// store. Throws StorageError.
checkpoint::Checkpoint find_checkpoint(const std::filesystem::path& path);

/// The weights to use: with `--raw-weights` the raw ones, else their mean.
inline step::Weights weights_of(bool raw) { return raw ? step::Weights::kRaw : step::Weights::kMean; }

/// Throws UsageError where a run of `job` cannot go on from the checkpoint: another optimizer, or another seed, and
/// with it another order of samples, in the middle of an epoch.
void require_resumable(const checkpoint::Checkpoint& saved, const job::Job& job, const std::string& optimizer);

/// Runs `restore`, which brings a checkpoint back. Where that throws UsageError and another job has written the
/// checkpoint, under another name or with another kind of model, this throws one that says so instead, because the
/// other job is the cause.
void restore_for(const job::Job& job, const checkpoint::Checkpoint& saved, const std::function<void()>& restore);

/// The scaler's state to go on with; empty where the checkpoint has none. The scale is the new job's where the old one
/// says nothing about it: it was static, or of another dtype. A checkpoint without a job, which a loop of a user's own
/// has saved, keeps its scale.
amp::GradScalerState scaler_state(const checkpoint::TrainingState& saved, const job::Job& job);

}  // namespace lockstep::train
