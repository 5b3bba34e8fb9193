// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/gpt2_files.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/data/formats/characters.h"
#include "runtime/data/formats/pre_tokens.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What Hugging Face's tokenizers and the regular expression of GPT-2's encoder give.
const json& golden() {
  static const json file = json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/byte_pairs.json"));
  return file;
}

class Gpt2FilesTest : public testing::Test {
 protected:
  Gpt2FilesTest() {
    vocab_ = golden()["vocabulary"]["vocab"];
    for (const json& merge : golden()["vocabulary"]["merges"]) merges_ += merge.get<std::string>() + "\n";
  }
  std::unique_ptr<AnyTokenizer> open() const {
    return read_gpt2_files({"vocab.json", vocab_.dump()}, {"merges.txt", merges_});
  }
  std::string error() const {
    return error_of([this] { open(); });
  }

  json vocab_;
  std::string merges_ = "#version: 0.2\n";
};

std::vector<std::string> pieces_of(const std::string& text) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_piece(CutPattern::kGpt2, text, at);
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

TEST(PreTokens, AreThoseOfTheRegularExpressionOfGpt2) {
  for (const auto& [name, text] : golden()["texts"].items()) {
    EXPECT_EQ(pieces_of(text["text"]), text["pieces"].get<std::vector<std::string>>()) << name;
  }
}

TEST_F(Gpt2FilesTest, EncodeAsHuggingFacesTokenizers) {
  const auto pairs = open();
  EXPECT_EQ(pairs->vocabulary(), std::ssize(vocab_));
  for (const auto& [name, text] : golden()["texts"].items()) {
    EXPECT_EQ(pairs->encode(text["text"].get<std::string>()), text["tokens"].get<std::vector<std::uint32_t>>()) << name;
    std::string back;
    for (const std::uint32_t token : pairs->encode(text["text"].get<std::string>())) back += pairs->text_of(token);
    EXPECT_EQ(back, text["text"].get<std::string>()) << name;
  }
}

TEST_F(Gpt2FilesTest, OfWindowsLineEndsAreTheSame) {
  const std::vector<std::uint32_t> tokens = open()->encode("the other theme");
  std::string dos;
  for (const char c : merges_) dos += c == '\n' ? std::string("\r\n") : std::string(1, c);
  merges_ = dos;
  EXPECT_EQ(open()->encode("the other theme"), tokens);
}

TEST_F(Gpt2FilesTest, AWordOfAMillionBytesIsEncodedInSeconds) {
  const std::vector<std::uint32_t> tokens = open()->encode(std::string(1 << 20, 'a'));
  EXPECT_LE(tokens.size(), std::size_t{1} << 20);
}

TEST_F(Gpt2FilesTest, DamageIsNamed) {
  const json vocab = vocab_;
  vocab_ = json::array();
  EXPECT_THAT(error(), HasSubstr("vocab.json: is no JSON object"));
  vocab_ = vocab;
  vocab_["new"] = -1;
  EXPECT_THAT(error(), HasSubstr("has a token \"new\" whose number is -1, expected one from 0 on"));
  vocab_["new"] = 0;
  EXPECT_THAT(error(), HasSubstr("has two tokens of the number 0"));
  vocab_ = vocab;
  vocab_.erase("a");
  EXPECT_THAT(error(), HasSubstr("has no token for the byte 0x61, \"a\""));
  vocab_ = vocab;
  merges_ = "#version: 0.2\nt h\nq zz\n";
  EXPECT_THAT(error(), HasSubstr("merges.txt:3: \"zz\" is no token of"));
  merges_ = "t h e\n";
  EXPECT_THAT(error(), HasSubstr("merges.txt:1: expected two tokens with a space between them"));
  const std::string bomb = "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_THAT(error_of([&] {
                read_gpt2_files({"bomb.json", bomb}, {});
              }),
              HasSubstr("bomb.json: is no JSON of at most 64 levels"));
  EXPECT_THAT(error_of([&] {
                read_gpt2_files({"cut.json", vocab.dump().substr(0, 100)}, {});
              }),
              HasSubstr("cut.json: is no JSON"));
}

TEST(Utf8, IsCheckedToTheByte) {
  EXPECT_FALSE(find_invalid_utf8("zażółć 😀"));
  EXPECT_EQ(find_invalid_utf8("ab\xff"), 2u);
  EXPECT_EQ(find_invalid_utf8("\xc0\x80"), 0u);       // longer than it needs to be
  EXPECT_EQ(find_invalid_utf8("a\xed\xa0\x80"), 1u);  // half of a surrogate pair
  EXPECT_EQ(find_invalid_utf8("\xe6\x97"), 0u);
}

}  // namespace
}  // namespace lockstep::data
