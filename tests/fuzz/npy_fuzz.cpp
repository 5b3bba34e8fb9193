// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/arrays.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// An array of three bytes, which is features and targets at once.
std::vector<std::string> npy_seeds() {
  const std::string text = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n";
  return {std::string("\x93NUMPY\1\0", 8) + static_cast<char>(text.size()) + '\0' + text + "\1\2\1"};
}

/// The bytes are features and targets.
void fuzz_npy(std::string_view bytes) {
  for (const data::TargetKind kind : {data::TargetKind::kClasses, data::TargetKind::kNumbers}) {
    with_file(bytes, [kind](const std::string& path) {
      const data::ArraysDataset set({path, path, kind});
      std::vector<float> values(static_cast<std::size_t>(set.sample_shape().numel()));
      const auto targets = static_cast<std::size_t>(set.target_shape().numel());
      std::vector<float> target(set.classes() > 0 ? 0 : targets);
      std::vector<std::int64_t> labels(set.classes() > 0 ? targets : 0);
      set.get({.index = set.size() - 1}, {.values = values, .target = target, .labels = labels});
    });
  }
}

}  // namespace

Target npy_target() { return {.parse = fuzz_npy, .seeds = npy_seeds()}; }

}  // namespace lockstep::fuzz
