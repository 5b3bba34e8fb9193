// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>

namespace lockstep::train {

/// All that a report shows of runs, as its page reads it: {"made": seconds since 1970, "version", "program",
/// "steps_a_bucket", "runs": [{"name", "directory", "status", "step", "steps", "best", "samples_per_s", "exit_code",
/// "settings": those in which the runs differ, "job": its text, "command": what repeats it, "summary", "problems",
/// "events": [{"event", "step", "time", "text"}], "evals":
/// [{"step", "loss", ...}], "curves": as Curves has them, "confusion", "pictures": [{"name", "png": base64}],
/// "texts"}]}. The last three come from RUN/confusion.json, RUN/pictures/ and RUN/texts.jsonl, as `lockstep eval` and
/// `infer` write them; null or empty without. Throws StorageError for a directory that is no run.
nlohmann::ordered_json report_data(std::span<const std::filesystem::path> runs);

}  // namespace lockstep::train
