// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>

namespace lockstep {

/// Where the sources are: those of the build, or, where a test runs on another machine than it was built on
/// (scripts/gpu_check --packed), those that LOCKSTEP_SOURCE_DIR names.
inline std::string source_folder() {
  const char* elsewhere = std::getenv("LOCKSTEP_SOURCE_DIR");
  return elsewhere ? elsewhere : LOCKSTEP_SOURCE_DIR;
}

}  // namespace lockstep
