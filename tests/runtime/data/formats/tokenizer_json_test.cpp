// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/tokenizer_json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "tests/runtime/data/formats/awkward_text.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Tokenizers of several families and what Hugging Face's library encodes by them.
const json& golden_tokenizers() {
  static const json file = json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/tokenizers.json"));
  return file;
}

std::unique_ptr<AnyTokenizer> tokenizer_of(const json& file) {
  return read_tokenizer_json({"tokenizer.json", file.dump()});
}

class TokenizerFamily : public testing::TestWithParam<std::string> {
 protected:
  const json& family() const { return golden_tokenizers()["tokenizers"][GetParam()]; }
};

TEST_P(TokenizerFamily, EncodesAsHuggingFacesTokenizers) {
  const auto tokenizer = tokenizer_of(family()["file"]);
  for (const auto& [name, text] : golden_tokenizers()["texts"].items()) {
    EXPECT_EQ(tokenizer->encode(text.get<std::string>()), family()["tokens"][name].get<std::vector<std::uint32_t>>())
        << name;
  }
}

TEST_P(TokenizerFamily, EncodesAMegabyteOfAwkwardTextAsHuggingFacesTokenizers) {
  const auto tokenizer = tokenizer_of(family()["file"]);
  const std::vector<std::uint32_t> tokens = tokenizer->encode(awkward_text(golden_tokenizers()["draws"]));
  EXPECT_EQ(tokens.size(), family()["long"]["count"].get<std::size_t>());
  EXPECT_EQ(fmt::format("{:016x}", digest_of(tokens)), family()["long"]["digest"].get<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Every, TokenizerFamily, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& [name, family] : golden_tokenizers()["tokenizers"].items()) {
                             names.push_back(name);
                           }
                           return names;
                         }()),
                         [](const auto& given) {
                           std::string name = given.param;
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

class TokenizerJsonTest : public testing::Test {
 protected:
  /// The file of a family, to change.
  static json file_of(const std::string& family) { return golden_tokenizers()["tokenizers"][family]["file"]; }
  static std::string error_of_file(const json& file) {
    return error_of([&] { tokenizer_of(file); });
  }
  static std::string written(const AnyTokenizer& tokenizer, const std::string& text) {
    std::string back;
    for (const std::uint32_t token : tokenizer.encode(text)) back += tokenizer.text_of(token);
    return back;
  }
};

TEST_F(TokenizerJsonTest, TokensAreWrittenAsTheTextThatTheyStandFor) {
  const std::string text = "It's 東京, e\u0301 👩‍👩‍👧\r\n\tthe <|end|> the";
  EXPECT_EQ(written(*tokenizer_of(file_of("gpt2")), text), text);
  EXPECT_EQ(written(*tokenizer_of(file_of("llama3")), text), "<s>" + text);
  EXPECT_EQ(written(*tokenizer_of(file_of("llama2")), text), "<s> " + text) << "a space stands before a word";
  EXPECT_EQ(written(*tokenizer_of(file_of("bert")), "The mother"), "[CLS] the mother[SEP]");
}

TEST_F(TokenizerJsonTest, TheVocabularyIsThatOfTheHighestToken) {
  json file = file_of("qwen2");
  const auto added = file["added_tokens"].back()["id"].get<std::int64_t>();
  EXPECT_EQ(tokenizer_of(file)->vocabulary(), added + 1);
  file["added_tokens"].back()["id"] = 151935;
  EXPECT_EQ(tokenizer_of(file)->vocabulary(), 151936);
  EXPECT_EQ(tokenizer_of(file)->text_of(100'000), "") << "a number that is no token";
}

TEST_F(TokenizerJsonTest, OfTwoMergesOfOnePairTheLastOneCounts) {
  json file = file_of("unknown");
  file["normalizer"] = file["pre_tokenizer"] = nullptr;
  file["model"]["vocab"] = {{"<unk>", 0}, {"a", 1}, {"b", 2}, {"c", 3}, {"ab", 4}, {"bc", 5}};
  file["model"]["merges"] = {"a b", "b c", "a b"};
  EXPECT_THAT(tokenizer_of(file)->encode("abc"), ElementsAre(1, 5));
  file["model"]["merges"] = json::array({{"a", "b"}, {"b", "c"}});
  EXPECT_THAT(tokenizer_of(file)->encode("abc"), ElementsAre(4, 3));
}

TEST_F(TokenizerJsonTest, ACharacterWithoutATokenIsNoSilentGap) {
  json file = file_of("unknown");
  file["model"]["unk_token"] = nullptr;
  EXPECT_THAT(error_of([&] { tokenizer_of(file)->encode("a 首\U0001f9ff"); }),
              HasSubstr("has no token for the character U+1F9FF"));
}

TEST_F(TokenizerJsonTest, WhatIsNotBuiltIsNamed) {
  const auto changed = [](const std::string& family, const std::string& pointer, const json& value) {
    json file = file_of(family);
    file[json::json_pointer(pointer)] = value;
    return error_of_file(file);
  };
  EXPECT_THAT(changed("gpt2", "/model/type", "Unigram"),
              HasSubstr("tokenizer.json: model.type names \"Unigram\", which is not built"));
  EXPECT_THAT(changed("qwen2", "/normalizer", {{"type", "Nmt"}}), HasSubstr("normalizer names \"Nmt\""));
  EXPECT_THAT(changed("qwen2", "/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\p{Han}"),
              HasSubstr("pre_tokenizer.pretokenizers[0].pattern.Regex names \"\\p{Han}\", which is not built"));
  EXPECT_THAT(changed("qwen2", "/pre_tokenizer/pretokenizers/0/behavior", "MergedWithNext"),
              HasSubstr("behavior names \"MergedWithNext\""));
  EXPECT_THAT(changed("gpt2", "/pre_tokenizer", {{"type", "UnicodeScripts"}}), HasSubstr("names \"UnicodeScripts\""));
  EXPECT_THAT(changed("gpt2", "/post_processor", {{"type", "Other"}}), HasSubstr("post_processor names \"Other\""));
  EXPECT_THAT(changed("gpt2", "/model/dropout", 0.1), HasSubstr("model.dropout is 0.1, which is not built"));
  EXPECT_THAT(changed("gpt2", "/model/end_of_word_suffix", "</w>"), HasSubstr("end_of_word_suffix is </w>"));
  EXPECT_THAT(changed("gpt2", "/added_tokens/0/single_word", true), HasSubstr("added_tokens[0].single_word is true"));
}

TEST_F(TokenizerJsonTest, DamageIsNamed) {
  const auto changed = [](const std::string& family, const std::string& pointer, const json& value) {
    json file = file_of(family);
    file[json::json_pointer(pointer)] = value;
    return error_of_file(file);
  };
  EXPECT_THAT(error_of([] { read_tokenizer_json({"t.json", "{"}); }), HasSubstr("t.json: is no JSON of at most 64"));
  EXPECT_THAT(error_of_file(json::array()), HasSubstr("tokenizer.json: is no tokenizer"));
  EXPECT_THAT(changed("gpt2", "/model/vocab/new", 0), HasSubstr("model.vocab has two tokens of the number 0"));
  EXPECT_THAT(changed("gpt2", "/model/merges/0", "a b c"), HasSubstr("model.merges[0] is no pair of tokens"));
  EXPECT_THAT(changed("gpt2", "/model/merges/0", "a zz"), HasSubstr("needs \"zz\", which is no token"));
  EXPECT_THAT(changed("llama2", "/model/unk_token", "what"),
              HasSubstr("model.unk_token is \"what\", which is no token"));
  EXPECT_THAT(changed("gpt2", "/added_tokens/0/id", 5), HasSubstr("added_tokens[0].id is 5, but"));
  EXPECT_THAT(changed("llama3", "/added_tokens/0/id", 5),
              HasSubstr("added_tokens[0].id is 5, which another token has"));
  EXPECT_THAT(changed("llama2", "/post_processor/single", json::array()), HasSubstr("leaves the text out"));
  json file = file_of("gpt2");
  file["model"]["vocab"].erase("a");
  EXPECT_THAT(error_of_file(file), HasSubstr("model.vocab has no token for the byte \"a\""));
}

}  // namespace
}  // namespace lockstep::data
