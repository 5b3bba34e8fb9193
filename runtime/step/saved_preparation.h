// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "runtime/data/preparation.h"

namespace lockstep::checkpoint {
class TrainingState;
}

namespace lockstep::step {

/// Adds what a run knows of its training data alone.
void save_preparation(const data::Preparation& preparation, checkpoint::TrainingState& state);

/// None in a checkpoint of a version that saved none. Throws StorageError, naming `file`, where an extent is below 0.
std::optional<data::Preparation> saved_preparation(const checkpoint::TrainingState& state, const std::string& file);

}  // namespace lockstep::step
