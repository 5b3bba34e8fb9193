// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace lockstep::launcher {

/// Writes a command's answers to stdout, at once. Throws StorageError where they do not arrive: the disk behind it is
/// full, or who read them has gone.
void write_out(std::string_view text);

}  // namespace lockstep::launcher
