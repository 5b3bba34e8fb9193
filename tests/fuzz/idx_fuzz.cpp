// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/idx.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// Two images of 2 x 2 pixels, and two labels.
std::vector<std::string> idx_seeds() {
  return {std::string("\0\0\x08\x03", 4) + std::string("\0\0\0\2\0\0\0\2\0\0\0\2", 12) + "abcdefgh",
          std::string("\0\0\x08\x01", 4) + std::string("\0\0\0\2", 4) + "\1\2"};
}

/// The bytes are both files: labels differ from images in a byte of the header alone.
void fuzz_idx(std::string_view bytes) {
  with_file(bytes, [](const std::string& path) { data::count_idx_classes(path); });
  with_file(bytes, [](const std::string& path) { data::IdxKind::open({path, path, 10}); });
}

}  // namespace

Target idx_target() { return {.parse = fuzz_idx, .seeds = idx_seeds()}; }

}  // namespace lockstep::fuzz
