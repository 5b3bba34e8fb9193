// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lockstep::launcher {

/// The findings of inspect(), for a person to read.
std::string inspection_text(const nlohmann::ordered_json& inspection);

}  // namespace lockstep::launcher
