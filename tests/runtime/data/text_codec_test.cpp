// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/text_codec.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "tests/runtime/data/sample_files.h"

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

TEST(TextCodec, NumbersStandForWhatAVocabularySays) {
  const auto golden = nlohmann::json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/byte_pairs.json"));
  std::string merges = "#version: 0.2\n";
  for (const auto& merge : golden["vocabulary"]["merges"]) merges += merge.get<std::string>() + "\n";
  const TemporaryFolder folder;
  const TextCodec codec({.files = {"a.bin"},
                         .context = 1,
                         .vocab_file = folder.write_text("vocab.json", golden["vocabulary"]["vocab"].dump()),
                         .merges_file = folder.write_text("merges.txt", merges)});
  std::string back;
  for (const std::int64_t token : codec.encode("to be")) back += codec.decode(token);
  EXPECT_EQ(back, "to be");
  EXPECT_EQ(codec.decode(1 << 20), "") << "the data may have more tokens";
}

TEST(TextCodec, OfTheFilesInMemoryIsTheSame) {
  const auto golden = nlohmann::json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/tokenizers.json"));
  const TemporaryFolder folder;
  const TokensOptions options{
      .files = {"a.bin"},
      .format = TokenFormat::kUint32,
      .context = 1,
      .tokenizer_file = folder.write_text("tokenizer.json", golden["tokenizers"]["llama2"]["file"].dump())};
  const TokenizerFiles files = read_tokenizer_files(options);
  const std::vector<std::int64_t> tokens = TextCodec(options).encode("to be 京\n");
  std::filesystem::remove(options.tokenizer_file);
  const TextCodec carried(files);
  EXPECT_EQ(carried.encode("to be 京\n"), tokens);
  std::string back;
  for (const std::int64_t token : tokens) back += carried.decode(token);
  EXPECT_EQ(back, "<s> to be 京\n");
  EXPECT_THAT(TextCodec(TokenizerFiles()).encode("a"), ElementsAre('a')) << "bytes have no files";
  EXPECT_THROW(carried.encode("caf\xe9"), UsageError);
  EXPECT_THROW(TextCodec(TokenizerFiles{{"tokenizer.bin", ""}}), StorageError);
}

}  // namespace
}  // namespace lockstep::data
