// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lockstep::launcher {

/// The contents of a path, as `lockstep inspect --json` prints them: {"kind": "checkpoint" | "bundle" | "run" |
/// "safetensors", "path", ...}. Damage is told under "damage", for a run in its list of checkpoints. Throws
/// StorageError for a path that is missing or holds none of these, UsageError for a job.
nlohmann::ordered_json inspect(const std::filesystem::path& path);

/// Whether the inspection found damage.
bool is_damaged(const nlohmann::ordered_json& inspection);

/// The findings of inspect(), for a person to read.
std::string inspection_text(const nlohmann::ordered_json& inspection);

}  // namespace lockstep::launcher
