// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/field_path.h"

namespace lockstep {

std::string join_path(std::string_view parent, std::string_view name) {
  return parent.empty() ? std::string(name) : std::string(parent) + "." + std::string(name);
}

std::string element_path(const std::string& path, int index) { return path + "[" + std::to_string(index) + "]"; }

std::string parent_path(const std::string& path) {
  const std::size_t end = path.find_last_of(".[");
  return end == std::string::npos ? std::string() : path.substr(0, end);
}

}  // namespace lockstep
