// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "configs/job.pb.h"
#include "runtime/data/dataset.h"

namespace lockstep::data {

enum class Split { kTrain, kEval };

/// The data set that a resolved job describes: normalised, and for training augmented. Throws StorageError for files
/// that cannot be read and UsageError for settings that do not fit them.
DatasetPtr make_dataset(const job::Data& data, Split split);

}  // namespace lockstep::data
