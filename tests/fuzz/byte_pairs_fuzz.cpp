// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/formats/byte_pairs.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// A token for each byte and two that merges make.
std::vector<std::string> byte_pairs_seeds() {
  std::string vocab = "{";
  int number = 0;
  const auto add = [&](unsigned code) {
    std::string name(1, static_cast<char>(code));
    if (code == '"' || code == '\\') name = "\\" + name;
    if (code >= 0x80) name = {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
    vocab += "\"" + name + "\":" + std::to_string(number++) + ",";
  };
  for (unsigned code = 0x21; code < 0x100; ++code) {
    if (code <= 0x7e || (code >= 0xa1 && code != 0xad)) add(code);
  }
  for (unsigned code = 0x100; code < 0x100 + 68; ++code) add(code);
  return {"a b|ab c\n" + vocab + "\"ab\":256,\"abc\":257}"};
}

/// The first line is merges.txt, where '|' ends a line; the rest is vocab.json, and the text.
void fuzz_byte_pairs(std::string_view bytes) {
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  std::string merges(bytes.substr(0, end));
  std::ranges::replace(merges, '|', '\n');
  const std::string rest(bytes.substr(end));
  with_file(rest, [&](const std::string& vocab) {
    with_file(merges, [&](const std::string& path) { data::BytePairs(vocab, path).encode(rest); });
  });
}

}  // namespace

Target byte_pairs_target() {
  return {.parse = fuzz_byte_pairs,
          .seeds = byte_pairs_seeds(),
          .rounds = 10'000,
          // Deeper than a stack.
          .hostile = {"\n{\"a\":" + std::string(1 << 20, '[') + std::string(1 << 20, ']') + "}"}};
}

}  // namespace lockstep::fuzz
