// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/tokens.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/data/loader.h"
#include "runtime/data/make_dataset.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Bytes uint32_bytes(const std::vector<int>& tokens) {
  Bytes bytes;
  for (const int token : tokens) {
    for (const int shift : {0, 8, 16, 24}) bytes.push_back(static_cast<std::uint8_t>(token >> shift));
  }
  return bytes;
}

/// Little-endian.
Bytes uint16_bytes(const std::vector<int>& tokens) {
  Bytes bytes;
  for (const int token : tokens) {
    bytes.push_back(static_cast<std::uint8_t>(token));
    bytes.push_back(static_cast<std::uint8_t>(token >> 8));
  }
  return bytes;
}

Bytes llm_c_bytes(const std::vector<int>& tokens, std::uint32_t magic = 20240520, std::uint32_t version = 1) {
  Bytes bytes;
  for (const std::uint32_t word : {magic, version, static_cast<std::uint32_t>(tokens.size())}) {
    for (const int shift : {0, 8, 16, 24}) bytes.push_back(static_cast<std::uint8_t>(word >> shift));
  }
  bytes.resize(1024);
  const Bytes rest = uint16_bytes(tokens);
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

class TokensTest : public testing::Test {
 protected:
  /// The numbers 0, 1, ...
  static std::vector<int> counted(int count) {
    std::vector<int> tokens(static_cast<std::size_t>(count));
    std::iota(tokens.begin(), tokens.end(), 0);
    return tokens;
  }
  TokensOptions of(const std::vector<int>& tokens, const std::string& name = "t.bin") const {
    return {.files = {folder_.write(name, uint16_bytes(tokens))}, .context = 3};
  }
  static std::vector<std::int64_t> first_tokens(const TokensDataset& set) {
    std::vector<std::int64_t> firsts;
    for (std::int64_t i = 0; i < set.size(); ++i) firsts.push_back(drawn(set, {.index = i}).tokens[0]);
    return firsts;
  }

  TemporaryFolder folder_;
};

TEST_F(TokensTest, ASampleIsTheContextAndTheTokenAfterEach) {
  const TokensDataset set(of({10, 300, 12, 50256, 14, 15, 16, 17}));
  EXPECT_EQ(set.size(), 2);
  EXPECT_EQ(set.sample_shape(), (Shape{3}));
  EXPECT_EQ(set.target_shape(), (Shape{3}));
  EXPECT_EQ(set.targets_per_sample(), 3);
  EXPECT_EQ(set.vocabulary(), 50257);
  EXPECT_EQ(set.classes(), 50257);
  EXPECT_EQ(drawn(set, {.index = 0}), (Drawn{.tokens = {10, 300, 12}, .labels = {300, 12, 50256}}));
  EXPECT_EQ(drawn(set, {.index = 1}), (Drawn{.tokens = {50256, 14, 15}, .labels = {14, 15, 16}}));
}

TEST_F(TokensTest, WindowsLieAStrideApart) {
  TokensOptions options = of(counted(10));
  EXPECT_THAT(first_tokens(TokensDataset(options)), ElementsAre(0, 3, 6));
  options.stride = 1;
  EXPECT_THAT(first_tokens(TokensDataset(options)), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  options.stride = 4;
  EXPECT_THAT(first_tokens(TokensDataset(options)), ElementsAre(0, 4));
}

TEST_F(TokensTest, SharesOfOneFileTrainAndEvaluate) {
  TokensOptions train = of(counted(20));
  train.stride = 1;
  TokensOptions eval = train;
  train.end = 0.7;
  eval.begin = 0.7;
  const TokensDataset first(train);
  const TokensDataset second(eval);
  EXPECT_THAT(drawn(first, {.index = first.size() - 1}).labels, ElementsAre(11, 12, 13));
  EXPECT_THAT(drawn(second, {.index = 0}).tokens, ElementsAre(14, 15, 16));
  EXPECT_EQ(second.size(), 3);
}

TEST_F(TokensTest, NoSampleReachesOverTheEndOfAFile) {
  TokensOptions options = of(counted(6));
  options.files = {options.files[0], of({90, 91}, "short.bin").files[0], of({50, 51, 52, 53, 54}, "b.bin").files[0]};
  options.stride = 1;
  const TokensDataset set(options);
  EXPECT_THAT(first_tokens(set), ElementsAre(0, 1, 2, 50, 51));
  EXPECT_EQ(drawn(set, {.index = 4}), (Drawn{.tokens = {51, 52, 53}, .labels = {52, 53, 54}}));
  // Shares are of all 13 tokens: from 6 on.
  options.begin = 0.5;
  EXPECT_THAT(first_tokens(TokensDataset(options)), ElementsAre(50, 51));
}

TEST_F(TokensTest, TheHeaderOfLlmCIsToldFromNanoGptsFile) {
  const std::string path = folder_.write("h.bin", llm_c_bytes({7, 8, 9, 10}));
  const TokensDataset set({.files = {path}, .context = 3});
  EXPECT_EQ(set.size(), 1);
  EXPECT_EQ(drawn(set, {}), (Drawn{.tokens = {7, 8, 9}, .labels = {8, 9, 10}}));
  // Of the format that is given, whatever the name.
  const std::string named = folder_.write("h.tokens", llm_c_bytes({7, 8, 9, 10}));
  EXPECT_EQ(TokensDataset({.files = {named}, .format = TokenFormat::kLlmC, .context = 3}).size(), 1);
}

TEST_F(TokensTest, NumbersOfFourBytesReachOver65535) {
  TokensOptions options{.files = {folder_.write("t.bin", uint32_bytes({151'935, 128'255, 65'536, 7}))},
                        .format = TokenFormat::kUint32,
                        .context = 3,
                        .vocabulary = 151'936};
  const TokensDataset set(options);
  EXPECT_EQ(set.size(), 1);
  EXPECT_EQ(set.vocabulary(), 151'936);
  EXPECT_EQ(drawn(set, {}), (Drawn{.tokens = {151'935, 128'255, 65'536}, .labels = {128'255, 65'536, 7}}));
  options.files = {folder_.write("cut.bin", Bytes(6))};
  EXPECT_THAT(error_of([&] { TokensDataset cut(options); }), HasSubstr("expected tokens of 4 bytes, found 6 bytes"));
}

TEST_F(TokensTest, TheHeaderOfLlmCSaysThatNumbersAreOfFourBytes) {
  Bytes bytes = llm_c_bytes({}, 20240801, 7);
  bytes[8] = 4;  // the count
  const Bytes numbers = uint32_bytes({128'255, 70'000, 3, 4});
  bytes.insert(bytes.end(), numbers.begin(), numbers.end());
  const TokensDataset set({.files = {folder_.write("h.bin", bytes)}, .context = 3});
  EXPECT_EQ(set.vocabulary(), 128'256);
  EXPECT_EQ(drawn(set, {}), (Drawn{.tokens = {128'255, 70'000, 3}, .labels = {70'000, 3, 4}}));
}

TEST_F(TokensTest, AnyOtherFileIsBytes) {
  const TokensDataset set({.files = {folder_.write_text("t.txt", "a\xffz!")}, .context = 3});
  EXPECT_EQ(set.vocabulary(), 256);
  EXPECT_EQ(drawn(set, {}), (Drawn{.tokens = {'a', 255, 'z'}, .labels = {255, 'z', '!'}}));
}

TEST_F(TokensTest, TextGoesThroughAVocabulary) {
  const json golden = json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/byte_pairs.json"));
  std::string merges = "#version: 0.2\n";
  for (const json& merge : golden["vocabulary"]["merges"]) merges += merge.get<std::string>() + "\n";
  const json& text = golden["texts"]["scripts"];
  const TokensOptions options{.files = {folder_.write_text("t.txt", text["text"].get<std::string>())},
                              .context = 5,
                              .stride = 1,
                              .vocab_file = folder_.write_text("vocab.json", golden["vocabulary"]["vocab"].dump()),
                              .merges_file = folder_.write_text("merges.txt", merges)};
  const TokensDataset set(options);
  const std::vector<std::int64_t> tokens = text["tokens"];
  EXPECT_EQ(set.vocabulary(), std::ssize(golden["vocabulary"]["vocab"]));
  ASSERT_EQ(set.size(), std::ssize(tokens) - 5);
  EXPECT_EQ(drawn(set, {.index = 2}), (Drawn{.tokens = {tokens.begin() + 2, tokens.begin() + 7},
                                             .labels = {tokens.begin() + 3, tokens.begin() + 8}}));
  folder_.write_text("t.txt", "caf\xe9, in Latin-1");
  EXPECT_THAT(error_of([&] { TokensDataset broken(options); }), HasSubstr("t.txt: byte 3 is not UTF-8 text"));
}

TEST_F(TokensTest, TextGoesThroughATokenizerFileWhichNumbersHaveTheirVocabularyFrom) {
  const json golden = json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/tokenizers.json"));
  const json& qwen = golden["tokenizers"]["qwen2"];
  const std::string text = golden["texts"]["scripts"];
  TokensOptions options{.files = {folder_.write_text("t.txt", text)},
                        .context = 5,
                        .tokenizer_file = folder_.write_text("tokenizer.json", qwen["file"].dump())};
  const std::vector<std::int64_t> tokens = qwen["tokens"]["scripts"];
  EXPECT_EQ(drawn(TokensDataset(options), {}).tokens, std::vector(tokens.begin(), tokens.begin() + 5));
  const std::int64_t vocabulary = TokensDataset(options).vocabulary();
  EXPECT_EQ(vocabulary, qwen["file"]["added_tokens"].back()["id"].get<std::int64_t>() + 1);
  options.files = {folder_.write("n.bin", uint32_bytes({1, 2, 3, 4, 5, 6}))};
  options.format = TokenFormat::kUint32;
  EXPECT_EQ(TokensDataset(options).vocabulary(), vocabulary);
}

TEST_F(TokensTest, EvaluationTextsGoThroughTheTokenizerOfTraining) {
  const json golden = json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/tokenizers.json"));
  const std::string text = folder_.write_text("t.txt", golden["texts"]["scripts"].get<std::string>());
  const TokensOptions train{
      .files = {text},
      .context = 5,
      .tokenizer_file = folder_.write_text("tokenizer.json", golden["tokenizers"]["gpt2"]["file"].dump())};
  const DataOptions options{.train = train, .eval = TokensOptions{.files = {text}, .context = 5}};
  EXPECT_EQ(drawn(*make_dataset(options, Split::kEval), {}), drawn(*make_dataset(options, Split::kTrain), {}));
}

/// Every other test of order and resume holds for any data set; this one shows it for tokens.
TEST_F(TokensTest, TwoRanksResumeInMidEpochWithTheTokensOfOneRank) {
  TokensOptions options = of(counted(200));
  options.stride = 2;
  const auto set = std::make_shared<TokensDataset>(options);
  const auto loader = [&](std::int64_t rank, std::int64_t world_size, const SamplerState& start = {}) {
    return Loader(set, {.global_batch = 9, .rank = rank, .world_size = world_size, .seed = 4, .start = start});
  };
  const auto tokens = [](const Tensor& tensor) {
    const auto values = tensor.as<std::int64_t>();
    return std::vector<std::int64_t>(values.begin(), values.end());
  };
  Loader whole = loader(0, 1);
  Loader first = loader(0, 2);
  Loader second = loader(1, 2);
  for (int step = 0; step < 30; ++step) {
    const SamplerState state = first.state();
    Loader resumed = loader(1, 2, state);
    const Batch all = whole.next();
    const Batch left = first.next();
    const Batch right = second.next();
    EXPECT_EQ(all.input.dtype(), DType::kInt64);
    EXPECT_EQ(all.target.shape(), all.input.shape());
    std::vector<std::int64_t> together = tokens(left.input);
    std::ranges::copy(tokens(right.input), std::back_inserter(together));
    EXPECT_EQ(together, tokens(all.input)) << step;
    const Batch again = resumed.next();
    EXPECT_EQ(tokens(again.input), tokens(right.input));
    EXPECT_EQ(tokens(again.target), tokens(right.target));
    EXPECT_EQ(second.state(), first.state());
  }
}

TEST_F(TokensTest, DamageIsNamed) {
  const auto error = [](const TokensOptions& options) {
    return error_of([&] {
      const TokensDataset set(options);
      for (std::int64_t i = 0; i < set.size(); ++i) drawn(set, {.index = i});
    });
  };
  TokensOptions options = of({1, 2, 3, 4, 5, 60000, 6, 7});
  EXPECT_THAT(error(options), HasSubstr("t.bin: token 60000 at position 5 is outside the vocabulary of 50257"));
  options.vocabulary = 4;
  EXPECT_THAT(error(options), HasSubstr("token 4 at position 3 is outside the vocabulary of 4"));
  options.vocabulary = 60001;
  EXPECT_EQ(error(options), "no error");
  options.context = 8;
  EXPECT_THAT(error(options), HasSubstr("t.bin: no sample of 8 tokens and the next one in tokens 0 to 8 of 8"));
  const auto file = [&](const Bytes& bytes, TokenFormat format = TokenFormat::kByName) {
    return error({.files = {folder_.write("x.bin", bytes)}, .format = format, .context = 1});
  };
  EXPECT_THAT(file({1, 2, 3}), HasSubstr("x.bin: expected tokens of 2 bytes, found 3 bytes"));
  EXPECT_THAT(file({1, 2}, TokenFormat::kLlmC), HasSubstr("expected a header of 1024 bytes, found 2 bytes"));
  EXPECT_THAT(file(llm_c_bytes({1, 2}, 5), TokenFormat::kLlmC),
              HasSubstr("magic number 20240520 or 20240801 at byte 0, found 5"));
  EXPECT_THAT(file(llm_c_bytes({1, 2}, 20240520, 2)), HasSubstr("expected version 1 of the format at byte 4, found 2"));
  Bytes longer = llm_c_bytes({1, 2});
  longer.resize(longer.size() + 2);
  EXPECT_THAT(file(longer), HasSubstr("the header at byte 8 counts 2 tokens of 2 bytes, but 6 bytes follow it"));
  EXPECT_THAT(error({.files = {folder_.path("none.bin")}, .context = 1}), HasSubstr("No such file"));
  EXPECT_THAT(error({.files = {"/tmp"}, .context = 1}), HasSubstr("it is no regular file"));
}

TEST_F(TokensTest, NumbersOfFourBytesAreRefused) {
  std::vector<int> halves;
  for (int i = 0; i < 100; ++i) halves.insert(halves.end(), {i * 600 % 65536, i % 2});  // tokens up to 125,136
  const auto error = [](const TokensOptions& options) { return error_of([&] { TokensDataset set(options); }); };
  TokensOptions options = of(halves);
  EXPECT_THAT(error(options), HasSubstr("t.bin: holds numbers of 4 bytes, as it looks"));
  options.format = TokenFormat::kUint16;
  EXPECT_EQ(error(options), "no error") << "as the job says";
  // Of few tokens, of those that are all low, and of an odd number nothing is known.
  EXPECT_EQ(error(of({halves.begin(), halves.begin() + 100})), "no error");
  EXPECT_EQ(error(of(std::vector<int>(200, 3))), "no error");
  halves.push_back(7);
  EXPECT_EQ(error(of(halves)), "no error");
}

TEST_F(TokensTest, AFileThatIsCutOffUnderARunIsNamed) {
  const TokensOptions options = of(counted(100));
  const TokensDataset set(options);
  std::filesystem::resize_file(options.files[0], 20);
  EXPECT_EQ(drawn(set, {.index = 0}).tokens[0], 0);
  EXPECT_THAT(error_of([&] { drawn(set, {.index = 20}); }), HasSubstr("t.bin is too short: expected 128 bytes"));
}

TEST(TokensOptionsTest, WithoutAMeaningAreRefused) {
  const auto field = [](TokensOptions options) {
    if (options.files.empty()) options.files = {"t.bin"};
    const FieldProblems problems = problems_of(options);
    return problems.empty() ? "" : problems[0].field;
  };
  EXPECT_EQ(field({.context = 1}), "");
  EXPECT_EQ(field({.context = 0}), "context");
  EXPECT_EQ(field({.context = 1, .begin = 0.5, .end = 0.5}), "end");
  EXPECT_EQ(field({.context = 1, .begin = -0.1}), "begin");
  EXPECT_EQ(field({.context = 1, .vocab_file = "v"}), "merges_file");
  EXPECT_EQ(field({.format = TokenFormat::kBpe, .context = 1}), "vocab_file");
  EXPECT_EQ(field({.format = TokenFormat::kBpe, .context = 1, .tokenizer_file = "t"}), "");
  EXPECT_EQ(field({.context = 1, .vocab_file = "v", .merges_file = "m", .tokenizer_file = "t"}), "tokenizer_file");
  EXPECT_EQ(field({.format = TokenFormat::kBytes, .context = 1, .tokenizer_file = "t"}), "tokenizer_file");
  EXPECT_EQ(field({.format = TokenFormat::kUint32, .context = 1}), "vocabulary");
  EXPECT_EQ(field({.format = TokenFormat::kUint32, .context = 1, .tokenizer_file = "t"}), "");
  EXPECT_EQ(field({.format = TokenFormat::kBytes, .context = 1, .vocab_file = "v", .merges_file = "m"}), "vocab_file");
  EXPECT_THAT(([] { make_dataset({.train = TokensOptions{.files = {"t"}}}, Split::kTrain); }),
              ThrowsMessage<FieldError>(HasSubstr("data.train.tokens.context: must be >= 1")));
}

TEST(SyntheticTokens, MostOftenFollowARuleAndAreOthersForEvaluation) {
  const DataOptions options{.train = SyntheticOptions{.samples = 50, .shape = {40}, .vocabulary = 100},
                            .eval = SyntheticOptions{.samples = 50, .shape = {40}, .vocabulary = 100}};
  const DatasetPtr set = make_dataset(options, Split::kTrain);
  EXPECT_EQ(describe(options, Split::kTrain).targets_per_sample, 40);
  EXPECT_EQ(set->targets_per_sample(), 40);
  EXPECT_EQ(set->classes(), 100);
  int ruled = 0;
  for (std::int64_t i = 0; i < 50; ++i) {
    const Drawn sample = drawn(*set, {.index = i});
    EXPECT_TRUE(std::equal(sample.tokens.begin() + 1, sample.tokens.end(), sample.labels.begin()));
    for (std::size_t t = 0; t < 40; ++t) {
      EXPECT_LT(sample.labels[t], 100);
      ruled += sample.labels[t] == (5 * sample.tokens[t] + 3) % 100 ? 1 : 0;
    }
  }
  EXPECT_GT(ruled, 1650);
  EXPECT_LT(ruled, 1850);
  EXPECT_NE(drawn(*set, {}), drawn(*make_dataset(options, Split::kEval), {}));
}

}  // namespace
}  // namespace lockstep::data
