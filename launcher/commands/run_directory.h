// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::job {
class Job;
}

namespace lockstep::launcher {

/// `given`, or the directory that a job's runs have by default.
std::filesystem::path run_directory(const std::string& given, const job::Job& job);

/// run_directory() for who reads from it: the default one that is not in the current folder may lie beside the job's
/// file. Throws StorageError, which says where was looked, when neither is there.
std::filesystem::path found_run_directory(const std::string& given, const job::Job& job,
                                          const std::filesystem::path& job_file);

/// Makes the directory and those above it. Throws StorageError.
void make_run_directory(const std::filesystem::path& directory);

/// Whether a checkpoint was saved into the run directory since `time`.
bool saved_since(const std::filesystem::path& directory, std::filesystem::file_time_type time);

}  // namespace lockstep::launcher
