// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "amp/grad_scaler/grad_scaler.h"
#include "comm/ddp/distributed_data_parallel.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/optim/optimizer.h"
#include "runtime/step/progress.h"

namespace lockstep::step {

/// What a checkpoint's state file says of these three and of the place in the data, for a run that has come to
/// `progress`. Waits for a GPU.
checkpoint::TrainingState describe(const Progress& progress, comm::DistributedDataParallel& ddp,
                                   const optim::Optimizer& optimizer, const amp::GradScaler& scaler);

Progress progress_of(const checkpoint::TrainingState& saved);
/// Empty where the checkpoint has none.
amp::GradScalerState scaler_of(const checkpoint::TrainingState& saved);

}  // namespace lockstep::step
