// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace lockstep::job {

/// At most the first `limit` bytes of a file, or of a pipe, as a shell makes of <(COMMAND). Throws StorageError that
/// says why there are none: also for a pipe into which nobody writes for a second, or whose writer says nothing for a
/// minute.
std::string read_job_text(const std::filesystem::path& file, std::size_t limit);

}  // namespace lockstep::job
