// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace lockstep::train {

/// Moves an earlier run's files into a folder `earlier-<n>` of `run_dir`, so that a new run starts there and nothing is
/// lost.
void set_aside_earlier_run(const std::filesystem::path& run_dir);
/// Sets aside the checkpoints of later steps than `step`, from which a run goes on. They belong to another
/// continuation: nothing may resume from them, and this run will save in their places.
void set_aside_later_checkpoints(const std::filesystem::path& run_dir, std::uint64_t step);
/// Sets aside the best weights where they are of a later step than `step`: those steps are trained again.
void set_aside_later_best(const std::filesystem::path& run_dir, std::uint64_t step);
/// Sets aside a file of the run's record from which later steps cannot be dropped, so that no step stands there twice.
/// Logs that and `why`. A failure is logged, too: a record does not end a run.
void set_aside_record(const std::filesystem::path& file, const std::string& why);

}  // namespace lockstep::train
