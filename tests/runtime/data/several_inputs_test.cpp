// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/data/several_inputs.h"

#include <gmock/gmock.h>

#include <cstring>

#include "runtime/base/error.h"
#include "runtime/data/collate.h"
#include "runtime/data/data_digest.h"
#include "runtime/data/dealt_blocks.h"
#include "runtime/data/description.h"
#include "runtime/data/loader.h"
#include "runtime/data/mixup.h"

namespace lockstep::data {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

/// As ImagesTablesAndTexts, but for one number of the table of a sample.
class WithAnotherTable final : public Transform {
 public:
  using Transform::Transform;

 private:
  void apply(const SampleKey& key, const Sample& sample) const override {
    if (key.index == 0) sample.more_inputs[0].values[2] += 1;
  }
};

/// Cannot read sample 1, after it has written something.
class WithATornSample final : public Transform {
 public:
  using Transform::Transform;

 private:
  void apply(const SampleKey& key, const Sample& /*sample*/) const override {
    if (key.index == 1) throw StorageError("torn");
  }
};

Batch whole_batch(const DatasetPtr& dataset, SampleErrors errors = {}) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(dataset->size()));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
  const std::int64_t rows = dataset->size();
  return collate({dataset, errors}, {.step = {0, rows}, .micro = {0, rows}, .rank = {0, rows}}, indices);
}

TEST(SeveralInputs, LieInABatchAsTensorsOfTheirOwn) {
  const Batch batch = whole_batch(std::make_shared<ImagesTablesAndTexts>(4));
  const std::vector<Tensor> inputs = batch.inputs();
  ASSERT_EQ(inputs.size(), 3u);
  EXPECT_EQ(inputs[0].shape(), (Shape{4, 2, 2, 1}));
  EXPECT_EQ(inputs[1].shape(), (Shape{4, 3}));
  EXPECT_EQ(inputs[1].dtype(), DType::kFloat32);
  EXPECT_EQ(inputs[2].shape(), (Shape{4, 2}));
  EXPECT_THAT(inputs[0].rows(1, 2).as<float>(),
              ElementsAre(FloatEq(0.4f), FloatEq(-0.8f), FloatEq(0.3f), FloatEq(-0.9f)));
  EXPECT_THAT(inputs[2].rows(1, 2).as<std::int64_t>(), ElementsAre(1, 3));
}

TEST(SeveralInputs, OfARanksLoadersAreTheRowsOfOneLoader) {
  const auto dataset = std::make_shared<ImagesTablesAndTexts>();
  const auto options = [](std::int64_t rank, std::int64_t ranks, std::int64_t threads) {
    return LoaderOptions{.global_batch = 7, .rank = rank, .world_size = ranks, .seed = 3, .decode_threads = threads};
  };
  for (const std::int64_t ranks : {1, 2, 3}) {
    Loader whole(dataset, options(0, 1, 1));
    std::vector<std::unique_ptr<Loader>> shares;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      shares.push_back(std::make_unique<Loader>(dataset, options(rank, ranks, 3)));
    }
    for (int step = 0; step < 5; ++step) {
      const Batch expected = whole.next();
      std::int64_t row = 0;
      for (const auto& share : shares) {
        const Batch batch = share->next();
        const std::int64_t end = row + batch.input.size(0);
        for (std::size_t i = 0; i < 2; ++i) {
          const Tensor rows = expected.more_inputs[i].rows(row, end), got = batch.more_inputs[i];
          ASSERT_EQ(got.shape(), rows.shape());
          EXPECT_EQ(std::memcmp(got.data(), rows.data(), rows.bytes()), 0) << ranks << " ranks, step " << step;
        }
        row = end;
      }
      EXPECT_EQ(row, expected.input.size(0));
    }
  }
}

TEST(SeveralInputs, OfNumbersAreRoundedToTheDtypeThatTheModelTakes) {
  const auto dataset = std::make_shared<ImagesTablesAndTexts>(4);
  LoaderOptions options{.global_batch = 4, .shuffle = false, .prefetch = 0};
  const Batch wide = Loader(dataset, options).next();
  options.input_dtype = DType::kFloat16;
  const Batch narrow = Loader(dataset, options).next();
  EXPECT_EQ(narrow.more_inputs[0].dtype(), DType::kFloat16);
  EXPECT_EQ(narrow.more_inputs[1].dtype(), DType::kInt64);
  for (std::int64_t i = 0; i < 12; ++i) {
    const double value = wide.more_inputs[0].item(i);
    EXPECT_NEAR(narrow.more_inputs[0].item(i), value, std::abs(value) * 0x1p-11);
  }
}

TEST(SeveralInputs, CountForTheDigest) {
  const auto digest = [](const Dataset& dataset) {
    DataHashes hashes;
    dataset.Dataset::add_to_digest(hashes);
    return hashes.content.hex();
  };
  const auto dataset = std::make_shared<ImagesTablesAndTexts>();
  EXPECT_EQ(digest(*dataset), digest(ImagesTablesAndTexts()));
  EXPECT_NE(digest(*dataset), digest(WithAnotherTable(dataset)));
  EXPECT_THAT(digest_of("data.train", *dataset).form,
              HasSubstr("17 samples of [2, 2, 1] and [3] and [2] tokens below 7"));
}

TEST(SeveralInputs, AreZerosWhereNoSampleCanBeRead) {
  const auto dataset = std::make_shared<WithATornSample>(std::make_shared<ImagesTablesAndTexts>(3));
  const Batch batch = whole_batch(dataset, {.on_error = OnError::kSkip, .max_skipped = 0});
  EXPECT_EQ(batch.skipped_samples, 1);
  EXPECT_THAT(batch.more_inputs[0].rows(1, 2).as<float>(), Each(0.0f));
  EXPECT_THAT(batch.more_inputs[1].rows(1, 2).as<std::int64_t>(), Each(0));
}

TEST(SeveralInputs, PassThroughWhatPicksSamples) {
  const auto dataset = std::make_shared<ImagesTablesAndTexts>();
  const DealtBlocks blocks(dataset, 4, 1, 2);
  EXPECT_EQ(blocks.more_inputs(), dataset->more_inputs());
}

TEST(SeveralInputs, AreRefusedWhereOneIsMeant) {
  const Description data = describe(ImagesTablesAndTexts());
  EXPECT_THROW(require_mixup(0.2, data), FieldError);
  Description one = data;
  one.more_inputs.clear();
  EXPECT_NO_THROW(require_mixup(0.2, one));
  EXPECT_THROW(require_alike(one, data), FieldError);
  EXPECT_THROW(as_trained(one, data), FieldError);
}

}  // namespace
}  // namespace lockstep::data
