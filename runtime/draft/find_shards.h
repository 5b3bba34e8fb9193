// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/draft/files.h"
#include "runtime/draft/find_data.h"

namespace lockstep::draft {

/// Images and labels in tar files. Names that count on are written as one pattern, "train-{000..146}.tar". Throws
/// StorageError for a file whose first members cannot be read.
FoundData find_shards(const Split& files);

}  // namespace lockstep::draft
