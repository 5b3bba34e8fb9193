// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/formats/gpt2_files.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// A token for each byte and two that merges make.
std::vector<std::string> gpt2_files_seeds() {
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
void fuzz_gpt2_files(std::string_view bytes) {
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  std::string merges(bytes.substr(0, end));
  std::ranges::replace(merges, '|', '\n');
  const std::string rest(bytes.substr(end));
  try {
    data::read_gpt2_files({"vocab.json", rest}, {"merges.txt", merges})->encode(rest);
  } catch (const StorageError&) {
  }
}

}  // namespace

Target gpt2_files_target() {
  return {.parse = fuzz_gpt2_files,
          .seeds = gpt2_files_seeds(),
          .rounds = 10'000,
          // Deeper than a stack.
          .hostile = {"\n{\"a\":" + std::string(1 << 20, '[') + std::string(1 << 20, ']') + "}"}};
}

}  // namespace lockstep::fuzz
