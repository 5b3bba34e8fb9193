// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/program_search.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

namespace lockstep {

std::optional<std::filesystem::path> find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::filesystem::path candidate = std::filesystem::path(folder) / name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

}  // namespace lockstep
