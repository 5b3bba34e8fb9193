// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/make_dataset.h"

namespace lockstep::data {

/// The volumes that are evaluated on, each as a whole, where patches of them are trained on.
struct WholeVolumes {
  DatasetPtr all;                ///< as they are stored, for their digest: its samples are no whole ones
  std::vector<DatasetPtr> each;  ///< of one sample, normalised: [D, H, W, C], other extents for each
};

/// Opens the evaluation data of volumes; they may be smaller than the patch. Throws as make_dataset() does, and
/// FieldError at data.augment.patch where the job has none: then evaluation takes whole volumes anyway.
WholeVolumes whole_volumes(const DataOptions& options);

}  // namespace lockstep::data
