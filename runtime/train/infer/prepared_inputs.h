// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "runtime/data/inputs/inputs.h"
#include "runtime/data/inputs/readable_inputs.h"
#include "runtime/data/make_dataset.h"

namespace lockstep::train {

/// Files to predict, as the model is to see them.
struct PreparedInputs {
  std::shared_ptr<const data::Inputs> inputs;            ///< that tell where samples come from
  std::shared_ptr<const data::ReadableInputs> readable;  ///< the same, normalised; those that cannot be read are zeros
};

/// Throws as data::open_inputs().
PreparedInputs prepared_inputs(const data::DataOptions& data, std::span<const std::string> paths);
/// Of inputs that are open.
PreparedInputs prepared(const data::DataOptions& data, std::shared_ptr<const data::Inputs> inputs);

}  // namespace lockstep::train
