// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lockstep::launcher {

/// The findings of examine(), for a person to read.
std::string doctor_text(const nlohmann::ordered_json& examination);

}  // namespace lockstep::launcher
