// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

/// Raises this process's limit of open files where `more` than are open now would pass it. Throws EnvironmentError,
/// with `what` needs them and `advice` beside that of raising the limit, where that is not allowed.
void allow_open_files(std::size_t more, const std::string& what, const std::string& advice);

}  // namespace lockstep
