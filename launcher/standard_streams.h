// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::launcher {

/// Opens /dev/null for stdin, stdout or stderr where it came closed, as a daemon's may: else the next file that is
/// opened takes its place, and what is printed goes there. Before any other file is opened.
void open_standard_streams() noexcept;

}  // namespace lockstep::launcher
