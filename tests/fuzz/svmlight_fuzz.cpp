// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/svmlight.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

std::vector<std::string> svmlight_seeds() {
  return {"+1 1:0.5 3:-2e-1 # a comment\r\n\n-1 2:1\n", "# all\n2.5 1:1 7:3\n0\n1 2:4\n"};
}

/// Within little memory: a high index asks for much.
void fuzz_svmlight(std::string_view bytes) {
  for (const data::TargetKind kind : {data::TargetKind::kClasses, data::TargetKind::kNumbers}) {
    for (const bool zero_based : {true, false}) {
      with_file(bytes, [&](const std::string& path) {
        data::SvmlightDataset({.files = {path}, .zero_based = zero_based, .target_kind = kind}, MemoryBudget(1 << 20));
      });
    }
    with_file(bytes, [](const std::string& path) { data::SvmlightKind::found({path}); });
  }
}

}  // namespace

Target svmlight_target() { return {.parse = fuzz_svmlight, .seeds = svmlight_seeds(), .rounds = 10'000}; }

}  // namespace lockstep::fuzz
