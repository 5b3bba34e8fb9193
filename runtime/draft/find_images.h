// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

#include "runtime/draft/find_data.h"

namespace lockstep::draft {

/// Images in folders of their classes, or those within folders named train or training and val, test or another name
/// for evaluation, in any case and among other words: training_set. A folder that holds nothing but one with those
/// stands for it. The samples' size follows from those of the images: at most 224. None where the folder has no such
/// folders. Throws UsageError for images of one class, without a folder of their class, or for evaluation alone.
std::optional<FoundData> find_images(const std::filesystem::path& folder);

}  // namespace lockstep::draft
