// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "model_zoo/hub_model.h"
#include "runtime/init/find_data.h"
#include "runtime/init/recipe.h"

namespace lockstep::init {

/// Gives images the size that the model of `folder` was made for, and notes where a text's tokens are not the model's.
void fit_data_to_hub_model(const model_zoo::HubModel& model, const std::filesystem::path& folder, FoundData& found);

/// A recipe that goes on from the weights of `folder`: `model` is what the folder says of itself. The rates are those
/// that such weights are fine-tuned with. `base`: the folder of the job. `choice`: of the folder's tensors, as
/// init_from has it; empty: all.
Recipe hub_recipe(const model_zoo::HubModel& model, const std::filesystem::path& folder, const FoundData& found,
                  const data::Description& data, const std::filesystem::path& base, const std::string& choice);

}  // namespace lockstep::init
