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

void take_program_name() {
  std::error_code failure;
  const std::filesystem::path file = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (!failure) name() = file.filename().string();
}

}  // namespace lockstep
