// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::launcher {

/// Has spdlog's log written to stderr, as results go to stdout. Warnings come behind what was printed before them, wait
/// only a moment for a reader, and show control characters of files and peers as text.
void log_to_stderr();

}  // namespace lockstep::launcher
