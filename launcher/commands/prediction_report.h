// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "launcher/commands/prediction_options.h"

namespace lockstep::launcher {

/// `prediction` of `lockstep bench JOB --json`: the steps of the `layouts` by the profile of a run; docs/performance.md
/// names the fields.
nlohmann::ordered_json prediction_of(const train::StepProfile& profile, const PredictionOptions& options,
                                     const train::MeasuredLinks& measured);

/// It as a table.
std::string prediction_text(const nlohmann::ordered_json& prediction);

}  // namespace lockstep::launcher
