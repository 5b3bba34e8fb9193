// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/masked_tokens.h"

#include <gmock/gmock.h>

#include <set>

#include "runtime/data/eval_batches.h"
#include "runtime/data/loader.h"
#include "runtime/data/make_dataset.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kLength = 20, kTexts = 40;

class MaskedTokensTest : public testing::Test {
 protected:
  TokensOptions texts(const MaskedTokensOptions& masked) const {
    std::string text;
    for (std::int64_t i = 0; i < kTexts * kLength + 1; ++i) text += static_cast<char>('a' + i % 26);
    return {.files = {folder_.write_text("t.txt", text)}, .context = kLength, .vocabulary = 128, .masked = masked};
  }
  static DatasetPtr made(const TokensOptions& options, Split split = Split::kTrain) {
    return make_dataset({.train = options, .eval = options}, split);
  }

  TemporaryFolder folder_;
};

TEST_F(MaskedTokensTest, EachSampleHasTheSameNumberOfTargetsWhichItHides) {
  TokensOptions plain = texts({});
  plain.masked.reset();
  const DatasetPtr masked = made(texts({})), whole = made(plain);
  EXPECT_EQ(masked->size(), kTexts);
  EXPECT_EQ(masked->targets_per_sample(), 3);  // 15 % of 20
  EXPECT_EQ(masked->vocabulary(), 129);
  EXPECT_EQ(masked->classes(), 128);
  EXPECT_EQ(masked->target_shape(), (Shape{kLength}));
  std::set<std::size_t> places;
  std::int64_t hidden = 0, replaced = 0, left = 0;
  for (std::int64_t i = 0; i < kTexts; ++i) {
    for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
      const Drawn sample = drawn(*masked, {.index = i, .epoch = epoch});
      const std::vector<std::int64_t> text = drawn(*whole, {.index = i}).tokens;
      std::int64_t targets = 0;
      for (std::size_t at = 0; at < text.size(); ++at) {
        if (sample.labels[at] == kIgnoredLabel) {
          EXPECT_EQ(sample.tokens[at], text[at]);
          continue;
        }
        ++targets;
        places.insert(at);
        EXPECT_EQ(sample.labels[at], text[at]);
        if (sample.tokens[at] == 128) {
          ++hidden;
        } else {
          EXPECT_LT(sample.tokens[at], 128);
          ++(sample.tokens[at] == text[at] ? left : replaced);
        }
      }
      EXPECT_EQ(targets, 3);
    }
  }
  EXPECT_EQ(std::ssize(places), kLength);
  const double all = static_cast<double>(hidden + replaced + left);  // 2400
  EXPECT_NEAR(static_cast<double>(hidden) / all, 0.8, 0.03);
  EXPECT_NEAR(static_cast<double>(replaced) / all, 0.1, 0.02);
  EXPECT_NEAR(static_cast<double>(left) / all, 0.1, 0.02);
}

TEST_F(MaskedTokensTest, ASampleDependsOnItsKeyAlone) {
  const DatasetPtr set = made(texts({.share = 0.3}));
  const Drawn first = drawn(*set, {.index = 3, .epoch = 1, .seed = 5});
  drawn(*set, {.index = 4, .epoch = 1, .seed = 5});
  EXPECT_EQ(drawn(*set, {.index = 3, .epoch = 1, .seed = 5}), first);
  EXPECT_NE(drawn(*set, {.index = 3, .epoch = 2, .seed = 5}).labels, first.labels);
  EXPECT_NE(drawn(*set, {.index = 3, .epoch = 1, .seed = 6}).labels, first.labels);
}

TEST_F(MaskedTokensTest, RanksHaveTheTargetsOfOneRank) {
  const DatasetPtr set = made(texts({}));
  const auto loader = [&](std::int64_t rank, std::int64_t world_size) {
    return Loader(set, {.global_batch = 9, .rank = rank, .world_size = world_size, .seed = 4});
  };
  const auto numbers = [](const Tensor& tensor) {
    const auto values = tensor.as<std::int64_t>();
    return std::vector<std::int64_t>(values.begin(), values.end());
  };
  Loader whole = loader(0, 1), first = loader(0, 2), second = loader(1, 2);
  for (int step = 0; step < 10; ++step) {
    const Batch all = whole.next(), left = first.next(), right = second.next();
    std::vector<std::int64_t> together = numbers(left.target);
    std::ranges::copy(numbers(right.target), std::back_inserter(together));
    EXPECT_EQ(together, numbers(all.target)) << step;
  }
}

TEST_F(MaskedTokensTest, EvaluationHidesAsTrainingDoesAndAlwaysTheSame) {
  const TokensOptions train = texts({.share = 0.5, .mask_token = 7});
  TokensOptions plain = train;
  plain.masked.reset();
  const DatasetPtr eval = make_dataset({.train = train, .eval = plain}, Split::kEval);
  EXPECT_EQ(eval->targets_per_sample(), 10);
  EXPECT_EQ(eval->vocabulary(), 128);
  EXPECT_EQ(describe(DataOptions{.train = train, .eval = plain}, Split::kEval).targets_per_sample, 10);
  const Batch batch = EvalBatches(eval, 4, 0, 1)[0];
  const Drawn first = drawn(*eval, {.index = 0});
  EXPECT_TRUE(std::ranges::equal(batch.input.rows(0, 1).as<std::int64_t>(), first.tokens));
  EXPECT_TRUE(std::ranges::equal(batch.target.rows(0, 1).as<std::int64_t>(), first.labels));
  EXPECT_THAT([&] { make_dataset({.train = plain, .eval = train}, Split::kEval); },
              ThrowsMessage<FieldError>(HasSubstr("data.eval.tokens.masked: the targets of data.train.tokens")));
}

TEST_F(MaskedTokensTest, WhatHasNoMeaningIsRefused) {
  const auto refuses = [this](const MaskedTokensOptions& masked, const std::string& message) {
    EXPECT_THAT([&] { made(texts(masked)); }, ThrowsMessage<FieldError>(HasSubstr(message)));
  };
  refuses({.share = 0}, "data.train.tokens.masked.share: must be > 0 and <= 1, is 0");
  refuses({.share = 1.5}, "data.train.tokens.masked.share: must be > 0 and <= 1");
  refuses({.share = 0.02}, "data.train.tokens.masked.share: leaves a sample of 20 tokens without a target");
  refuses({.mask_token = -1}, "data.train.tokens.masked.mask_token: must be >= 0");
  EXPECT_EQ(made(texts({.share = 1}))->targets_per_sample(), kLength);
  EXPECT_EQ(made(texts({.mask_token = 200}))->vocabulary(), 201);
}

}  // namespace
}  // namespace lockstep::data
