// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::nn {

/// FNV-1a: names a module or parameter in the counter-based generator, the same in every build and on every rank.
constexpr std::uint32_t name_hash(std::string_view name) {
  std::uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

}  // namespace lockstep::nn
