// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace lockstep::job {

class Job;

inline constexpr std::size_t kMostSavedBytes = std::size_t{1} << 20;

/// The job that a run has saved, as resolved, for who compares runs: nothing is filled in, checked or looked for.
/// Fields that this version does not know are left out. None where the text is no job.
std::optional<Job> read_saved(const std::string& text);

}  // namespace lockstep::job
