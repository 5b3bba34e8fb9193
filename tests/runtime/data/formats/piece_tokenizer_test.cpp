// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/piece_tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/runtime/data/formats/awkward_text.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// Models that SentencePiece trained, and what its library encodes by them.
const json& golden_pieces() {
  static const json file = json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/sentence_pieces.json"));
  return file;
}

std::string model_of(const std::string& name) {
  const auto digits = golden_pieces()["models"][name]["model"].get<std::string>();
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

class PieceModels : public testing::TestWithParam<std::string> {
 protected:
  const json& model() const { return golden_pieces()["models"][GetParam()]; }
  std::unique_ptr<AnyTokenizer> open() const { return read_piece_tokenizer({"t.model", model_of(GetParam())}); }
};

TEST_P(PieceModels, EncodeAsSentencePiece) {
  const auto tokenizer = open();
  for (const auto& [name, text] : golden_pieces()["texts"].items()) {
    EXPECT_EQ(tokenizer->encode(text.get<std::string>()), model()["tokens"][name].get<std::vector<std::uint32_t>>())
        << name;
  }
}

TEST_P(PieceModels, EncodeAMegabyteOfAwkwardTextAsSentencePiece) {
  const json draws = json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/tokenizers.json"))["draws"];
  const std::vector<std::uint32_t> tokens = open()->encode(awkward_text(draws));
  EXPECT_EQ(tokens.size(), model()["long"]["count"].get<std::size_t>());
  EXPECT_EQ(fmt::format("{:016x}", digest_of(tokens)), model()["long"]["digest"].get<std::string>());
}

/// The library leaves out the space that stands before the text.
TEST_P(PieceModels, WriteTokensAsSentencePieceDoes) {
  const auto tokenizer = open();
  std::string text;
  for (const std::uint32_t token : tokenizer->encode("the mother: 東京 \U0001f9ff")) text += tokenizer->text_of(token);
  const auto expected = model()["decoded"].get<std::string>();
  EXPECT_EQ(text.substr(text.find("the")).substr(0, expected.size()), expected);
}

INSTANTIATE_TEST_SUITE_P(Every, PieceModels, testing::Values("unigram", "unigram bytes", "bpe", "bpe maps", "suffixes"),
                         [](const auto& given) {
                           std::string name = given.param;
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

TEST(PieceModel, DamageIsNamed) {
  const std::string model = model_of("unigram");
  const auto error = [](const std::string& bytes) {
    return error_of([&] { read_piece_tokenizer({"t.model", bytes}); });
  };
  EXPECT_EQ(error(model), "no error");
  EXPECT_THAT(error(""), HasSubstr("t.model: has no pieces"));
  EXPECT_THAT(error("hello, this is a text"), HasSubstr("t.model: is no SentencePiece model, or is cut off"));
  EXPECT_THAT(error(model.substr(0, model.size() / 2)), HasSubstr("is no SentencePiece model, or is cut off"));
  // A model of words: field 3 of the trainer's message, field 2.
  EXPECT_THAT(error(model + std::string("\x12\x02\x18\x03")), HasSubstr("is a model of the type 3"));
  // Fields 1 are pieces, of which field 1 is the text and field 3 the type.
  EXPECT_THAT(error(model + std::string("\x0a\x00", 2)), HasSubstr("has an empty piece"));
  EXPECT_THAT(error(model + "\x0a\x05\x0a\x03<s>"), HasSubstr("has the piece \"<s>\" twice"));
  EXPECT_THAT(error(model + "\x0a\x06\x0a\x02xy\x18\x02"), HasSubstr("has two pieces for what is unknown"));
  EXPECT_THAT(error(model + "\x0a\x06\x0a\x02xy\x18\x06"), HasSubstr("has the piece \"xy\" of a byte"));
  EXPECT_THAT(error(model + "\x12\x03\x98\x02\x01"), HasSubstr("has 0 pieces of bytes, expected 256"));
  // Field 2 of the normaliser's message, field 3, is its character map.
  EXPECT_THAT(error(model + "\x1a\x05\x12\x03zzz"), HasSubstr("its character map is damaged"));
}

}  // namespace
}  // namespace lockstep::data
