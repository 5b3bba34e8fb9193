// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/text_codec.h"

#include <gmock/gmock.h>

#include "runtime/tensor/error.h"

namespace lockstep::data {
namespace {

using testing::ElementsAre;

TEST(TextCodec, BytesAreTokens) {
  const TextCodec codec({.files = {"a.txt"}, .context = 1});
  const std::string text = "a\xc3\xa9";
  EXPECT_THAT(codec.encode(text), ElementsAre('a', 0xc3, 0xa9));
  std::string back;
  for (const std::int64_t token : codec.encode(text)) back += codec.decode(token);
  EXPECT_EQ(back, text);
  EXPECT_EQ(codec.decode(256), "") << "a model may know more tokens than there are";
}

TEST(TextCodec, NumbersHaveNoText) {
  EXPECT_THROW(TextCodec({.files = {"a.bin"}, .context = 1}), UsageError);
  EXPECT_THROW(TextCodec({.files = {"a"}, .format = TokenFormat::kUint16, .context = 1}), UsageError);
}

}  // namespace
}  // namespace lockstep::data
