// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lockstep::model_zoo {

// A config.json says of rotary positions "rope_theta" and "rope_scaling" { "rope_type", "factor", ... }; since
// transformers 5 all of it in "rope_parameters". As settings they are "rope_theta" and "rope_scaling.rope_type", whose
// value is that of the job's rope_scaling.type, "rope_scaling.factor" and so on; null where nothing is scaled. A type
// that is not known keeps its own name.

inline constexpr std::string_view kRopeType = "rope_scaling.rope_type";

/// Replaces what `config` says of rotary positions by settings. Throws UsageError where a known type lacks a number.
void take_rope_settings(nlohmann::ordered_json& config);

/// Why the type of scaling among settings cannot be had; empty where it can, and where there is none.
std::string problem_of_rope(const nlohmann::ordered_json& type);

/// A type of scaling as config.json has it, "llama3".
std::string rope_type_text(const nlohmann::ordered_json& type);

/// The reverse, in the form that both versions read.
void give_rope_settings(nlohmann::ordered_json& config);

/// Sets those of a job's rope_scaling to null that its type has no use for.
void drop_unused_rope_fields(nlohmann::ordered_json& fields);

}  // namespace lockstep::model_zoo
