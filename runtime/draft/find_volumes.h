// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

#include "runtime/draft/find_data.h"

namespace lockstep::draft {

/// A folder of volumes and one of their masks, which has names such as masks, labels or labelsTr; also within train/
/// and val/. None where there are no such folders. Volumes of differing or large extents get a patch. Throws
/// StorageError for files that cannot be read.
std::optional<FoundData> find_volumes(const std::filesystem::path& folder);

}  // namespace lockstep::draft
