// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace lockstep::train {

/// Moves an earlier run's files into a folder `earlier-<n>` of `run_dir`, so that a new run starts there and nothing is
/// lost.
void set_aside_earlier_run(const std::filesystem::path& run_dir);
/// The same for the checkpoints of steps behind `step` alone, from which a run goes on: they belong to another
/// continuation, and neither may they be resumed from nor stand where this one is about to save.
void set_aside_later_checkpoints(const std::filesystem::path& run_dir, std::uint64_t step);
/// The same for the best weights of steps behind `step`: what they are the best of is trained again.
void set_aside_later_best(const std::filesystem::path& run_dir, std::uint64_t step);
/// The same for one file of the run's record from which steps cannot be dropped: none must stand there twice. Says so,
/// and `why`, in the log; also where that fails as well, as a record does not end a run.
void set_aside_record(const std::filesystem::path& file, const std::string& why);

}  // namespace lockstep::train
