// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace lockstep::train {

// A run's summary.json must find room on a disk that something else has filled meanwhile. The run takes that room when
// it begins: a file of zeros beside it, `.summary.json.room`, which becomes the summary where no other can be written.

/// Takes the room, where the disk has it. One that a killed run has left is this run's.
void take_record_room(const std::filesystem::path& run_dir) noexcept;

/// Writes summary.json, whole or not at all, into the room, which is used up then. Returns whether that was possible.
bool write_into_record_room(const std::filesystem::path& run_dir, std::string_view summary) noexcept;

/// Gives the room back.
void return_record_room(const std::filesystem::path& run_dir) noexcept;

}  // namespace lockstep::train
