// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/train/step_profile.h"

namespace lockstep::launcher {

/// What `lockstep bench JOB --json` prints; docs/performance.md names the fields.
nlohmann::ordered_json to_json(const train::StepProfile& profile);

/// It as tables, with the `most` heaviest operations and layers.
std::string step_text(const nlohmann::ordered_json& report, std::size_t most);

}  // namespace lockstep::launcher
