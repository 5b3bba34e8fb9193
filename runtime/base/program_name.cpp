// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/program_name.h"

#include <filesystem>
#include <system_error>

namespace lockstep {

namespace {

std::string& name() {
  static std::string name = "lockstep";
  return name;
}

}  // namespace

const std::string& program_name() { return name(); }

std::string running_program() {
  std::error_code failure;
  const std::filesystem::path file = std::filesystem::read_symlink("/proc/self/exe", failure);
  return failure ? name() : file.filename().string();
}

void take_program_name() { name() = running_program(); }

}  // namespace lockstep
