// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::kernels {

/// The engine and choices in cuDNN's name of an execution plan: "eng12_k2=9_k24=0" is engine 12 with choice 9 for knob
/// 2 and 0 for knob 24, in the numbers of the library's version.
struct EngineName {
  std::int64_t engine = 0;
  std::vector<std::pair<int, std::int64_t>> knobs;  ///< in the name's order

  /// Returns nothing where `name` is no such name.
  static std::optional<EngineName> parse(std::string_view name);
};

}  // namespace lockstep::kernels
