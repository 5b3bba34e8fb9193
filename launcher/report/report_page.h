// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lockstep::launcher {

/// Throws EnvironmentError where the build had no plotting library.
void require_plotting();

/// A whole page with the data, as train::report_data() gives them, that asks no network for anything. Throws as
/// require_plotting() does.
std::string report_page(const nlohmann::ordered_json& data);

}  // namespace lockstep::launcher
