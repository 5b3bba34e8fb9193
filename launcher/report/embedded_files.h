// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace lockstep::launcher {

/// A file that the build has put into the program: one of this folder, by its name, "dygraph.min.js" or
/// "dygraph.min.css". Empty where the build had no such file. scripts/cmake/LockstepEmbed.cmake makes the source.
std::string_view embedded_file(std::string_view name);

}  // namespace lockstep::launcher
