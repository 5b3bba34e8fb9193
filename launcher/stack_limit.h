// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::launcher {

/// Raises a limit of the stack (ulimit -s) that is so low that a run would end by SIGSEGV, for this thread and those to
/// come. Throws EnvironmentError where that is not allowed.
void require_stack();

}  // namespace lockstep::launcher
