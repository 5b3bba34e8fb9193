// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/group/world.h"
#include "runtime/tensor/device.h"
#include "runtime/train/infer/sliding_window.h"
#include "runtime/train/record/eval_result.h"
#include "runtime/train/saved_model.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

struct VolumeEvalOptions {
  SavedModel saved;
  SlidingWindowOptions windows = {};
};

/// Evaluates a checkpoint on the job's evaluation volumes as wholes, by windows of the patch that the job trains on
/// (sliding_window.h); volumes may differ in extents and be smaller than the patch. The metrics are those of an
/// evaluation of whole samples, each volume counting alike but for `accuracy`, the share of all voxels; and, with
/// classes, `dice_1`, `dice_2`, ...: of each class but 0, the background, the mean of Dice over the volumes where it
/// occurs in answer or mask; none of a class that occurs nowhere.
///
/// Volumes are dealt to the ranks and their numbers added up in the volumes' order, so that the result has the same
/// bits on any number of ranks. Throws FieldError at data.augment.patch where the job has none. A collective; throws
/// Error.
EvalResult evaluate_volumes(comm::World& world, const job::Job& job, const VolumeEvalOptions& options);

}  // namespace lockstep::train
