// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/collate.h"

#include <gmock/gmock.h>

#include "runtime/base/error.h"
#include "runtime/data/description.h"

namespace lockstep::data {
namespace {

using testing::ElementsAre;

/// Sample i: tokens i, i + 1, i + 2; the label of each is the next token, that of the last one is ignored.
class NextToken final : public Dataset {
 public:
  std::int64_t size() const override { return 8; }
  Shape sample_shape() const override { return {3}; }
  std::int64_t vocabulary() const override { return 16; }
  std::int64_t classes() const override { return 16; }
  Shape target_shape() const override { return {3}; }
  std::int64_t targets_per_sample() const override { return 2; }
  void get(const SampleKey& key, const Sample& sample) const override {
    for (std::int64_t t = 0; t < 3; ++t) {
      sample.tokens[static_cast<std::size_t>(t)] = key.index + t;
      sample.labels[static_cast<std::size_t>(t)] = t == 2 ? kIgnoredLabel : key.index + t + 1;
    }
  }
};

SampleReader reader_of_tokens() { return {std::make_shared<NextToken>(), {}}; }

TEST(Collate, TokensWithALabelAPosition) {
  const std::vector<std::int64_t> indices{5, 1, 4, 2};
  const Batch batch = collate(reader_of_tokens(), {.step = {0, 4}, .micro = {0, 4}, .rank = {1, 3}}, indices);
  EXPECT_EQ(batch.input.shape(), (Shape{2, 3}));
  EXPECT_EQ(batch.target.shape(), (Shape{2, 3}));
  EXPECT_THAT(batch.input.as<std::int64_t>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(batch.target.as<std::int64_t>(), ElementsAre(2, 3, kIgnoredLabel, 5, 6, kIgnoredLabel));
}

TEST(Collate, TokensOfNoSample) {
  const Batch batch =
      collate(reader_of_tokens(), {.step = {0, 1}, .micro = {0, 1}, .rank = {1, 1}}, std::vector<std::int64_t>{3});
  EXPECT_EQ(batch.input.shape(), (Shape{0, 3}));
  EXPECT_EQ(batch.input.dtype(), DType::kInt64);
}

/// Its targets are too many to look at them for each batch.
class ManyTargets final : public DerivedDataset {
 public:
  using DerivedDataset::DerivedDataset;
  TargetSummary target_summary() const override { throw UsageError("a batch looks at the targets of all samples"); }
};

TEST(Collate, DoesNotLookAtTheTargetsOfAllSamples) {
  const SampleReader reader(std::make_shared<ManyTargets>(std::make_shared<NextToken>()), {});
  const std::vector<std::int64_t> indices{5, 1};
  const BatchPlan plan{.step = {0, 2}, .micro = {0, 2}, .rank = {0, 2}};
  EXPECT_THAT(collate(reader, plan, indices).input.as<std::int64_t>(), ElementsAre(5, 6, 7, 1, 2, 3));
}

TEST(Description, OfTokensIsNotThatOfNumbers) {
  const Description tokens = describe(NextToken());
  EXPECT_EQ(tokens.vocabulary, 16);
  EXPECT_EQ(tokens.targets_per_sample, 2);
  Description numbers = tokens;
  numbers.vocabulary = 0;
  EXPECT_THROW(require_alike(numbers, tokens), FieldError);
  EXPECT_NO_THROW(require_alike(tokens, tokens));
}

}  // namespace
}  // namespace lockstep::data
