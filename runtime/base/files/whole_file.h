// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>
#include <system_error>

namespace lockstep {

/// Writes a file so that it is whole or absent: a reader, and whoever looks after a crash or a power failure, finds
/// either what was there before or all of `content`. It is written beside its place under a name of this call's own,
/// synced, and renamed; the directory is synced too. Makes missing directories. Returns what went wrong, and then
/// leaves nothing behind.
std::error_code write_whole_file(const std::filesystem::path& path, std::string_view content);

/// Removes from `folder` what calls of write_whole_file() have left that never returned: those of processes of this
/// host that have ended, and of other hosts a day ago. None of this process may be under way there.
void remove_abandoned_files(const std::filesystem::path& folder);

}  // namespace lockstep
