// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/target.h"

namespace lockstep::fuzz {
namespace {

/// Changes `text` in one of the ways that parsers stumble over.
void mutate(std::string& text, std::mt19937& random) {
  static const std::vector<std::string> kPieces = {"{",
                                                   "}",
                                                   "[",
                                                   "]",
                                                   "\"",
                                                   ",",
                                                   ":",
                                                   "-1",
                                                   "1e9",
                                                   "null",
                                                   "true",
                                                   "18446744073709551615",
                                                   "9223372036854775807",
                                                   "\\u0000",
                                                   "\xff",
                                                   "\"shape\"",
                                                   "\"__metadata__\"",
                                                   "\"dtype\":\"F64\"",
                                                   "mlp{",
                                                   "<",
                                                   "0x",
                                                   "'",
                                                   " "};
  const auto below = [&](std::size_t limit) { return limit == 0 ? 0 : random() % limit; };
  const std::size_t at = below(text.size() + 1);
  const std::size_t length = below(std::min<std::size_t>(text.size() - at, 24) + 1);
  switch (random() % 5) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, text.substr(below(text.size() + 1), length));
      break;
    case 3:
      text.insert(at, kPieces[below(kPieces.size())]);
      break;
    default:
      text.replace(at, length, kPieces[below(kPieces.size())]);
  }
}

void run_mutations(const std::string& seed, void (*parse)(std::string_view), int rounds) {
  std::mt19937 random(12345);
  for (int round = 0; round < rounds; ++round) {
    std::string text = seed;
    for (unsigned count = 1 + random() % 4; count > 0; --count) mutate(text, random);
    parse(text);
  }
}

class Mutations : public testing::TestWithParam<NamedTarget> {};
INSTANTIATE_TEST_SUITE_P(Parsers, Mutations, testing::ValuesIn(all_targets()),
                         [](const auto& target) { return std::string(target.param.name); });

TEST_P(Mutations, NeverHarm) {
  const Target target = GetParam().make();
  ASSERT_FALSE(target.seeds.empty());
  for (const std::string& seed : target.seeds) {
    EXPECT_TRUE(target.is_valid == nullptr || target.is_valid(seed));
    run_mutations(seed, target.parse, target.rounds);
  }
  for (const std::string& bytes : target.hostile) target.parse(bytes);
}

}  // namespace
}  // namespace lockstep::fuzz
