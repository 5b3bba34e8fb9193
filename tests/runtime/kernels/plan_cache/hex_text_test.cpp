// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/plan_cache/hex_text.h"

#include <gtest/gtest.h>

#include <array>

namespace lockstep::kernels {
namespace {

using Bytes = std::array<std::byte, 256>;

Bytes all_bytes() {
  Bytes bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

TEST(HexText, IsTwoDigitsAByte) {
  EXPECT_EQ(hex_of(std::array{std::byte{0}, std::byte{0x1f}, std::byte{0xa0}, std::byte{0xff}}), "001fa0ff");
  EXPECT_EQ(hex_of({}), "");
}

TEST(HexText, EveryByteIsReadAsItWasWritten) {
  Bytes read{};
  ASSERT_TRUE(parse_hex(hex_of(all_bytes()), read));
  EXPECT_EQ(read, all_bytes());
  EXPECT_TRUE(parse_hex("", {}));
}

TEST(HexText, DamagedTextIsRefusedAndChangesNothing) {
  const std::string whole = hex_of(all_bytes());
  Bytes read{};
  const auto refused = [&](const std::string& text) { return !parse_hex(text, read) && read == Bytes{}; };
  EXPECT_TRUE(refused(""));
  EXPECT_TRUE(refused("eng12_k2=9"));
  EXPECT_TRUE(refused(whole + "0"));
  EXPECT_TRUE(refused(whole + "00"));
  EXPECT_TRUE(refused("0x" + whole.substr(2)));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(refused(whole.substr(0, size))) << size;
    for (const char wrong : {'g', 'A', ' ', '-', '\0', '\xff'}) {
      std::string damaged = whole;
      damaged[size] = wrong;
      EXPECT_TRUE(refused(damaged)) << size << wrong;
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
