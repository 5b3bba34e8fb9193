// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "runtime/base/descriptor.h"

namespace lockstep {

// Files that say by a lock (flock) that a process uses them. The system drops the lock with the process, however that
// ends.

/// Makes a new file, which appears at `path` with the lock of this process on it: whoever finds it unlocked finds it
/// abandoned. Until then it stands at `path`.new, empty. None where it cannot be made; errno says why.
Descriptor make_locked_file(const std::string& path);

/// Takes the lock of a file that nobody holds. None where somebody does, and where the file cannot be opened.
Descriptor take_lock(const std::string& path);

}  // namespace lockstep
