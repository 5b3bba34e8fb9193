// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "amp/grad_scaler/grad_scaler.h"
#include "comm/ddp/bucket_plan.h"
#include "comm/group/communicator.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/train/network.h"

namespace lockstep::train {

/// The tensors of a checkpoint by logical name: "model/<parameter>" (float32 masters), "statistics/<name>",
/// "optimizer/<state>/<parameter>", "optimizer/step/<parameter>" (int64 [1], the steps applied to it). They are views:
/// writing into them restores.
std::map<std::string, Tensor> state_tensors(Network& network);

/// The same on the CPU: the tensors themselves where they lie there.
std::map<std::string, Tensor> host_copies(const std::map<std::string, Tensor>& tensors);

/// Writes a checkpoint's tensors into the network of rank 0. Throws UsageError that lists every missing, extra and
/// misshaped name before anything is written. `with_optimizer` false: evaluation, the optimizer's are left out.
void restore_tensors(Network& network, const checkpoint::Checkpoint& saved, bool with_optimizer);

/// Makes every rank's optimizer state and applied steps those of rank 0. A collective.
void broadcast_optimizer(optim::Optimizer& optimizer, comm::Communicator& communicator);

/// The checkpoint that `path` names: itself, or the newest whole one of a run directory or a checkpoint store. Throws
/// StorageError.
checkpoint::Checkpoint find_checkpoint(const std::filesystem::path& path);

/// Throws UsageError where a run of `job` cannot go on from the checkpoint: another optimizer, or another seed, and
/// with it another order of samples, in the middle of an epoch.
void require_resumable(const checkpoint::Checkpoint& saved, const job::Job& job, const std::string& optimizer);

/// Runs `restore`, which brings a checkpoint back. Where that throws UsageError and another job has written the
/// checkpoint, under another name or with another kind of model, this throws one that says so instead: what else does
/// not fit follows from it.
void restore_for(const job::Job& job, const checkpoint::Checkpoint& saved, const std::function<void()>& restore);

// Parts of the state file.
checkpoint::ScalerState to_message(const amp::GradScalerState& state);
checkpoint::BucketPlan to_message(const comm::BucketPlan& plan);

/// The scaler's state to go on with; empty where the checkpoint has none. The scale is the new job's where the old one
/// says nothing about it: it was static, or of another dtype.
amp::GradScalerState scaler_state(const checkpoint::TrainingState& saved, const job::Job& job);

}  // namespace lockstep::train
