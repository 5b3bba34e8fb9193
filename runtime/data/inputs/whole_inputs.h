// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/inputs/answer_files.h"
#include "runtime/data/inputs/whole_input.h"

namespace lockstep::data {

struct DataOptions;

/// Whether a model that was trained on the training data of `options`, whose preparation is known, predicts files as
/// wholes: volumes or images of image_masks, with a number or a class for each position.
bool predicts_wholes(const DataOptions& options);

// Of such models:

/// The extents of the windows that the model sees, [D, H, W] or [H, W]: data.augment.patch, or those of training
/// samples.
Shape window_of(const DataOptions& options);

/// The files that paths name, and those for the answers (answer_files.h).
std::vector<AnswerFile> answer_files(const DataOptions& options, std::span<const std::string> paths,
                                     const std::string& folder);

/// Opens a file, prepared as training samples are but for the normalisation. Throws StorageError.
std::shared_ptr<const WholeInput> open_whole(const DataOptions& options, const std::string& path);

}  // namespace lockstep::data
