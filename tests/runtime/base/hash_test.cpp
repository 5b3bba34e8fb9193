// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/hash.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

// XXH3-128 as the tool `xxhsum -H2` prints it.
TEST(Hash128, IsXxh3) {
  EXPECT_EQ(hash128_of(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash128_of("lockstep"), "b4ead11c934f0a1e75345b2b871d8c38");
  Hash128 hash;
  hash.update("lockstep");
  EXPECT_EQ(hash.high64(), 0xb4ead11c934f0a1eU);
}

TEST(Hash128, OfPiecesIsThatOfTheWhole) {
  const std::string text(1000, 'x');
  Hash128 pieces;
  pieces.update(text.substr(0, 333));
  pieces.update("");
  pieces.update(std::as_bytes(std::span(text)).subspan(333));
  EXPECT_EQ(pieces.hex(), hash128_of(text));
  EXPECT_EQ(pieces.hex(), hash128_of(text)) << "asking does not change it";
  pieces.update("y");
  EXPECT_NE(pieces.hex(), hash128_of(text));
}

}  // namespace
}  // namespace lockstep
