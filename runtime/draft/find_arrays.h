// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/draft/files.h"
#include "runtime/draft/find_data.h"

namespace lockstep::draft {

/// Pairs of .npy files: targets are called y, target, label or mask, or are the second of two. Whole numbers are
/// classes, but for 0 and 1 a position, which are a mask. Throws UsageError where a split has not two files.
FoundData find_arrays(const Split& files);

}  // namespace lockstep::draft
