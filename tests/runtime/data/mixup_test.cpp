// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/mixup.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "runtime/data/collate.h"
#include "runtime/data/csv.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

DatasetPtr counting(std::int64_t size) { return std::make_shared<Counting>(size); }

/// Sample i has the weight i.
class Weighted final : public Counting {
 public:
  using Counting::Counting;
  bool weighted() const override { return true; }
  void get(const SampleKey& key, const Sample& sample) const override {
    Counting::get(key, sample);
    sample.weight[0] = static_cast<float>(key.index);
  }
};

TEST(Mixup, ASampleIsAMixtureOfTwoWithTheLabelsOfBoth) {
  const Mixup dataset(counting(10), 0.4);
  for (std::int64_t index = 0; index < 10; ++index) {
    const SampleKey key{.index = index, .epoch = 3, .seed = 7};
    const Mixture mixture = mixture_of(key, 10, 0.4);
    const Drawn sample = drawn(dataset, key);
    EXPECT_NE(mixture.other, index);
    EXPECT_EQ(sample.labels[0], index);
    EXPECT_EQ(sample.other_label[0], mixture.other);
    const auto share = static_cast<float>(mixture.share);
    EXPECT_EQ(sample.weight[0], share);
    EXPECT_EQ(sample.other_weight[0], 1 - share);
    EXPECT_FLOAT_EQ(sample.values[0],
                    share * static_cast<float>(index) + (1 - share) * static_cast<float>(mixture.other));
  }
}

TEST(Mixup, TakesATableWithoutWeights) {
  const TemporaryFolder folder;
  const CsvOptions options{.files = {folder.write_text("t.csv", "x,y\n0,0\n1,1\n2,2\n3,3\n")}};
  const Mixup dataset(std::make_shared<CsvDataset>(options), 0.4);
  for (std::int64_t index = 0; index < 4; ++index) {
    const Drawn sample = drawn(dataset, {.index = index});
    EXPECT_EQ(sample.labels[0], index);
    EXPECT_NEAR(sample.weight[0] + sample.other_weight[0], 1, 1e-6);
  }
}

TEST(Mixup, WeightsOfSamplesAreThoseOfBoth) {
  const Mixup dataset(std::make_shared<Weighted>(10), 1.0);
  const SampleKey key{.index = 4};
  const Mixture mixture = mixture_of(key, 10, 1.0);
  const Drawn sample = drawn(dataset, key);
  const auto share = static_cast<float>(mixture.share);
  EXPECT_EQ(sample.weight[0], 4 * share);
  EXPECT_EQ(sample.other_weight[0], static_cast<float>(mixture.other) * (1 - share));
}

TEST(Mixup, DependsOnTheKeyAloneAndChangesWithTheEpoch) {
  const Mixup dataset(counting(100), 1.0);
  const SampleKey key{.index = 5, .epoch = 1, .seed = 2};
  EXPECT_EQ(drawn(dataset, key), drawn(dataset, key));
  EXPECT_NE(drawn(dataset, key), drawn(dataset, {.index = 5, .epoch = 2, .seed = 2}));
  EXPECT_NE(drawn(dataset, key), drawn(dataset, {.index = 5, .epoch = 1, .seed = 3}));
}

TEST(Mixup, EveryOtherSampleComesAboutEquallyOften) {
  constexpr std::int64_t kSamples = 5, kDraws = 8000;
  std::vector<int> counts(kSamples);
  for (std::int64_t epoch = 0; epoch < kDraws; ++epoch) {
    ++counts[static_cast<std::size_t>(
        mixture_of({.index = 2, .epoch = static_cast<std::uint64_t>(epoch)}, kSamples, 1).other)];
  }
  EXPECT_EQ(counts[2], 0);
  for (const std::size_t other : {0u, 1u, 3u, 4u}) EXPECT_NEAR(counts[other], kDraws / 4, 200);
}

TEST(Mixup, SharesAreOfTheBetaDistribution) {
  constexpr int kDraws = 40000;
  // Beta(1, 1) is uniform, Beta(1/2, 1/2) the arcsine law, Beta(2, 2) has the distribution function 3 x^2 - 2 x^3.
  const auto uniform = [](double x) { return x; };
  const auto arcsine = [](double x) { return 2 / std::numbers::pi * std::asin(std::sqrt(x)); };
  const auto cubic = [](double x) { return 3 * x * x - 2 * x * x * x; };
  const std::vector<std::pair<double, std::function<double(double)>>> laws{
      {1.0, uniform}, {0.5, arcsine}, {2.0, cubic}};
  for (const auto& [alpha, law] : laws) {
    std::vector<double> shares;
    for (int i = 0; i < kDraws; ++i) shares.push_back(mixture_of({.index = i, .seed = 11}, kDraws, alpha).share);
    std::ranges::sort(shares);
    double worst = 0;
    for (int i = 0; i < kDraws; ++i) {
      worst = std::max(worst, std::abs(law(shares[static_cast<std::size_t>(i)]) - (i + 0.5) / kDraws));
    }
    // Kolmogorov: above 1.95 / sqrt(n) once in a thousand seeds.
    EXPECT_LT(worst, 1.95 / std::sqrt(kDraws)) << alpha;
  }
}

TEST(Mixup, TinyAndLargeAlphasGiveShares) {
  for (const double alpha : {1e-8, 1e-3, 1e6}) {
    for (int i = 0; i < 1000; ++i) {
      const double share = mixture_of({.index = i}, 1000, alpha).share;
      EXPECT_NEAR(share, 0.5, alpha == 1e6 ? 0.01 : 0.5) << alpha;
    }
  }
}

TEST(Mixup, BatchesHoldBothTargetsAndTheirWeights) {
  const auto mixup = std::make_shared<Mixup>(counting(8), 0.3);
  const Mixup& dataset = *mixup;
  const Range rows{0, 4};
  const Batch batch = collate({mixup, {}}, {.epoch = 1, .seed = 5, .step = rows, .micro = rows, .rank = {1, 3}},
                              std::vector<std::int64_t>{7, 1, 0, 3});
  for (std::int64_t row = 0; row < 2; ++row) {
    const Drawn sample = drawn(dataset, {.index = row == 0 ? 1 : 0, .epoch = 1, .seed = 5});
    EXPECT_EQ(batch.input.item(row), static_cast<double>(sample.values[0]));
    EXPECT_EQ(batch.target.item(row), static_cast<double>(sample.labels[0]));
    EXPECT_EQ(batch.weight.item(row), static_cast<double>(sample.weight[0]));
    EXPECT_EQ(batch.other_target.item(row), static_cast<double>(sample.other_label[0]));
    EXPECT_EQ(batch.other_weight.item(row), static_cast<double>(sample.other_weight[0]));
  }
  const Batch plain =
      collate({counting(8), {}}, {.step = rows, .micro = rows, .rank = rows}, std::vector<std::int64_t>{7, 1, 0, 3});
  EXPECT_FALSE(plain.weight.defined() || plain.other_target.defined() || plain.other_weight.defined());
}

TEST(Mixup, RefusesWhatHasNoMixture) {
  const Description images{.samples = 10, .sample_shape = {4, 4, 1}, .classes = 3};
  const auto refused = [&](double alpha, const std::function<void(Description&)>& change, const std::string& why) {
    Description data = images;
    change(data);
    EXPECT_THAT([&] { require_mixup(alpha, data); }, ThrowsMessage<FieldError>(HasSubstr(why)));
  };
  EXPECT_NO_THROW(require_mixup(0.2, images));
  refused(
      -1, [](Description&) {}, "must be > 0");
  refused(
      1, [](Description& data) { data.vocabulary = 10; }, "are tokens");
  refused(
      1, [](Description& data) { data.classes = 0; }, "regression data");
  refused(
      1,
      [](Description& data) {
        data.target_shape = {4, 4};
      },
      "one label a sample");
  refused(
      1, [](Description& data) { data.samples = 1; }, "two samples");
}

}  // namespace
}  // namespace lockstep::data
