// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "amp/grad_scaler/grad_scaler_state.h"
#include "runtime/data/data_digest.h"
#include "runtime/step/loop_parts.h"
#include "runtime/step/progress.h"

namespace lockstep::checkpoint {
struct Checkpoint;
class ScalerState;
class TrainingState;
}  // namespace lockstep::checkpoint

namespace lockstep::step {

/// The content of a checkpoint's state file for the parts of a loop and its place in the data at `progress`. Waits for
/// a GPU.
checkpoint::TrainingState describe(const Progress& progress, const LoopParts& parts);

Progress progress_of(const checkpoint::TrainingState& saved);
/// Empty for a scaler that was disabled.
amp::GradScalerState state_of(const checkpoint::ScalerState& saved);

/// Adds what tells the run's data from others.
void save_digests(const std::vector<data::DataDigest>& digests, checkpoint::TrainingState& state);
/// The saved digests of data::kDigestFormat: those of another format cannot be compared with the run's.
std::vector<data::DataDigest> saved_digests(const checkpoint::TrainingState& saved);

/// Throws UsageError where the saved optimizers and scalers have other names or rules than those of the loop, or where
/// a scaler that is enabled has no state.
void require_same_parts(const LoopParts& parts, const checkpoint::Checkpoint& saved);

}  // namespace lockstep::step
