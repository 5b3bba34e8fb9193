// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "launcher/commands/prediction_options.h"

namespace lockstep::launcher {

/// `prediction` of `lockstep bench JOB --json`: the steps of the `layouts` by the profile of a run, and, for other
/// numbers of samples a rank, by the steps of half as many; docs/performance.md names the fields.
nlohmann::ordered_json prediction_of(const train::StepProfile& profile, const std::optional<train::MeasuredBatch>& half,
                                     const PredictionOptions& options, const train::MeasuredLinks& measured);

/// It as a table.
std::string prediction_text(const nlohmann::ordered_json& prediction);

}  // namespace lockstep::launcher
