// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/hmac.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::comm {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string hex(const Digest256& digest) {
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// The examples of FIPS 180-4.
TEST(Sha256, IsThatOfTheStandard) {
  EXPECT_EQ(hex(sha256(bytes_of(""))), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256(bytes_of("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(bytes_of(std::string(1000000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

struct Vector {
  std::string key;
  std::string message;
  std::string digest;
};

// The test cases of RFC 4231; its fifth one is of a digest that is cut.
TEST(HmacSha256, IsThatOfTheStandard) {
  const std::string counting = [] {
    std::string key;
    for (char c = 1; c <= 25; ++c) key += c;
    return key;
  }();
  const std::vector<Vector> vectors{
      {std::string(20, '\x0b'), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {std::string(20, '\xaa'), std::string(50, '\xdd'),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {counting, std::string(50, '\xcd'), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {std::string(131, '\xaa'),
       "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be "
       "hashed before being used by the HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"}};
  for (const Vector& each : vectors) {
    EXPECT_EQ(hex(hmac_sha256(bytes_of(each.key), bytes_of(each.message))), each.digest) << each.message;
  }
}

TEST(Digests, AreEqualInAllBytesOnly) {
  const Digest256 digest = sha256(bytes_of("abc"));
  EXPECT_TRUE(are_equal(digest, sha256(bytes_of("abc"))));
  for (std::size_t i = 0; i < digest.size(); ++i) {
    Digest256 other = digest;
    other[i] ^= 0x10;
    EXPECT_FALSE(are_equal(digest, other)) << i;
  }
}

}  // namespace
}  // namespace lockstep::comm
