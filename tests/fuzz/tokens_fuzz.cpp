// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/tokens.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// Numbers of two bytes, and such behind llm.c's header.
std::vector<std::string> tokens_seeds() {
  const std::string tokens("\1\0\2\0\3\0\4\0\5\0\6\0", 12);
  std::string header("\x88\xd8\x34\x01\1\0\0\0\6\0\0\0", 12);
  header.resize(1024);
  return {tokens, header + tokens};
}

/// As a file of each format, and as vocabulary and merges.
void fuzz_tokens(std::string_view bytes) {
  for (const data::TokenFormat format :
       {data::TokenFormat::kBytes, data::TokenFormat::kUint16, data::TokenFormat::kLlmC}) {
    with_file(bytes, [format](const std::string& path) {
      const data::TokensDataset set({.files = {path}, .format = format, .context = 4});
      std::vector<std::int64_t> tokens(4);
      std::vector<std::int64_t> labels(4);
      set.get({.index = set.size() - 1}, {.tokens = tokens, .labels = labels});
    });
  }
}

}  // namespace

Target tokens_target() { return {.parse = fuzz_tokens, .seeds = tokens_seeds()}; }

}  // namespace lockstep::fuzz
