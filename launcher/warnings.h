// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::launcher {

/// Has the log, spdlog's, written to stderr: results go to stdout. Warnings come behind what was printed before them,
/// wait for no reader, and show control characters of files and peers as text.
void log_to_stderr();

}  // namespace lockstep::launcher
