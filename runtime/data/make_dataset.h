// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "configs/job.pb.h"
#include "runtime/data/dataset.h"
#include "runtime/data/description.h"

namespace lockstep::data {

enum class Split { kTrain, kEval };

/// What make_dataset() would give, known from the headers and labels of its files. Throws what that would throw for
/// them; whether augmentation and normalisation fit is for require_augment() and require_normalize().
Description describe(const job::Data& data, Split split);

/// Throw FieldError for settings that do not fit samples of this shape.
void require_augment(const job::Augment& augment, const Shape& sample);
void require_normalize(const job::Normalize& normalize, const Shape& sample);

/// The data set that a resolved job describes: normalised, and for training augmented. Throws StorageError for files
/// that cannot be read and UsageError for settings that do not fit them.
DatasetPtr make_dataset(const job::Data& data, Split split);

}  // namespace lockstep::data
