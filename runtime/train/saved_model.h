// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

#include "runtime/data/make_dataset.h"
#include "runtime/data/preparation.h"
#include "runtime/tensor/dtype.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

/// Which weights to use, and what is known of the data that they were trained on.
struct SavedModel {
  std::filesystem::path checkpoint;  ///< itself, a bundle, or a run directory for its newest one
  bool raw_weights = false;          ///< not their running mean, where the checkpoint has one
  /// In place of the training data, which otherwise have to be where the job says.
  std::optional<data::Preparation> preparation = {};
};

/// The data of a job whose model is saved: where the preparation is known, nothing is read of the training data.
data::DataOptions data_of(const job::Job& job, const SavedModel& saved);

/// The same with the preparation, which is made of the training data where the checkpoint is of a version that saved
/// none.
data::DataOptions known_data_of(const job::Job& job, const SavedModel& saved);

/// What a deployed model computes in: float32, or with `half` the job's amp.dtype, fp16 where that is FP32.
DType inference_dtype(const job::Job& job, bool half);

}  // namespace lockstep::train
