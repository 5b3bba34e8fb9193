// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/hold_out.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/data/data_digest.h"
#include "runtime/data/formats/content_hash.h"
#include "runtime/data/make_dataset.h"
#include "tests/runtime/data/image_files.h"
#include "tests/runtime/data/nifti_files.h"
#include "tests/runtime/data/npy_files.h"
#include "tests/runtime/data/tar_files.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSubsetOf;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

DataOptions held(const DatasetOptions& train, double share) { return {.train = train, .hold_out = {share}}; }

/// The first value of each sample of a side.
std::multiset<float> values_of(const DataOptions& options, Split split) {
  const DatasetPtr dataset = make_dataset(options, split);
  std::multiset<float> values;
  for (std::int64_t i = 0; i < dataset->size(); ++i) values.insert(sample(*dataset, {.index = i})[0]);
  return values;
}

std::string content_of(const Dataset& dataset, std::int64_t index) {
  Hash128 hash;
  dataset.add_content(index, hash);
  return hash.hex();
}

class HoldOut : public testing::Test {
 protected:
  CsvOptions table(const std::string& text) const { return {.files = {folder_.write_text("t.csv", text)}}; }
  /// Rows from, from + 1, ... of one feature and a class.
  static std::string rows(int from, int to, int classes = 2) {
    std::string text;
    for (int i = from; i < to; ++i) text += std::to_string(i) + "," + std::to_string(i % classes) + "\n";
    return text;
  }

  TemporaryFolder folder_;
};

TEST_F(HoldOut, AShareOfTheSamplesIsHeldOutAndTheOthersAreTrainedOn) {
  const DataOptions options = held(table("x,y\n" + rows(0, 5000)), 0.1);
  const std::multiset<float> train = values_of(options, Split::kTrain), eval = values_of(options, Split::kEval);
  // Five deviations of a binomial distribution.
  EXPECT_NEAR(static_cast<double>(eval.size()), 500, 106);
  EXPECT_EQ(train.size() + eval.size(), 5000u);
  std::set<float> both(train.begin(), train.end());
  both.insert(eval.begin(), eval.end());
  EXPECT_THAT(both, SizeIs(5000)) << "no sample is on both sides";
  EXPECT_EQ(describe(options, Split::kEval).samples, static_cast<std::int64_t>(eval.size()));
  EXPECT_EQ(describe(options, Split::kTrain).labels.size(), train.size());
}

TEST_F(HoldOut, DuplicatesAreOnOneSideWhateverTheirTarget) {
  std::string text = "x,y\n";
  for (int copy = 0; copy < 4; ++copy) {
    for (int i = 0; i < 300; ++i) text += std::to_string(i) + "," + std::to_string((i + copy) % 2) + "\n";
  }
  const DataOptions options = held(table(text), 0.3);
  const std::multiset<float> train = values_of(options, Split::kTrain), eval = values_of(options, Split::kEval);
  for (const float value : eval) {
    EXPECT_EQ(eval.count(value), 4u) << value;
    EXPECT_EQ(train.count(value), 0u) << value;
  }
  EXPECT_EQ(train.size() + eval.size(), 1200u);
}

TEST_F(HoldOut, NoSampleChangesSidesWhereOthersAreAddedOrTheShareGrows) {
  const std::multiset<float> before = values_of(held(table("x,y\n" + rows(0, 400)), 0.2), Split::kEval);
  const CsvOptions more = table("x,y\n" + rows(400, 700) + rows(0, 400));
  std::multiset<float> after = values_of(held(more, 0.2), Split::kEval);
  EXPECT_GT(after.size(), before.size());
  std::erase_if(after, [](float value) { return value >= 400; });
  EXPECT_EQ(after, before);
  const std::multiset<float> grown = values_of(held(more, 0.4), Split::kEval);
  EXPECT_THAT(before, IsSubsetOf(grown));
}

TEST_F(HoldOut, BothSidesTakeOneLookAtEachSample) {
  struct Counting : DerivedDataset {
    using DerivedDataset::DerivedDataset;
    void add_content(std::int64_t index, Hash128& hash) const override {
      ++looks;
      DerivedDataset::add_content(index, hash);
    }
    mutable std::atomic<int> looks = 0;
  };
  const Counting all(std::make_shared<CsvDataset>(table("x,y\n" + rows(0, 1000))));
  SampleContents contents;
  const SideSamples held_out = samples_of(all, {0.3}, Side::kHeldOut, contents);
  const SideSamples trained = samples_of(all, {0.3}, Side::kTrained, contents);
  EXPECT_EQ(all.looks, 1000);
  EXPECT_EQ(held_out.indices.size() + trained.indices.size(), 1000u);
  DataOptions options = held(table("x,y\n" + rows(0, 1000)), 0.3);
  const std::multiset<float> expected = values_of(options, Split::kEval);
  options.contents = std::make_shared<SampleContents>();
  values_of(options, Split::kTrain);
  EXPECT_EQ(values_of(options, Split::kEval), expected);
}

TEST_F(HoldOut, ClassesAreThoseOfAllSamples) {
  // Class 2 has one sample, which is on one side.
  const DataOptions options = held(table("x,y\n" + rows(0, 50) + "1000,2\n"), 0.3);
  EXPECT_EQ(make_dataset(options, Split::kTrain)->classes(), 3);
  EXPECT_EQ(make_dataset(options, Split::kEval)->classes(), 3);
  EXPECT_EQ(describe(options, Split::kEval).classes, 3);
}

TEST_F(HoldOut, TheDigestIsThatOfTheSide) {
  const auto digest = [this](const std::string& last, Split split) {
    return digest_of("data", *make_dataset(held(table("x,y\n" + rows(0, 100) + last), 0.2), split)).content;
  };
  // Of the numbers behind 100, one of each side.
  const std::multiset<float> eval = values_of(held(table("x,y\n" + rows(0, 200)), 0.2), Split::kEval);
  int held_out = 100, trained = 100;
  while (!eval.contains(static_cast<float>(held_out))) ++held_out;
  while (eval.contains(static_cast<float>(trained))) ++trained;
  const std::string one = std::to_string(held_out) + ",0\n", other = std::to_string(trained) + ",0\n";
  EXPECT_EQ(digest("", Split::kTrain), digest(one, Split::kTrain));
  EXPECT_NE(digest("", Split::kEval), digest(one, Split::kEval));
  EXPECT_NE(digest("", Split::kTrain), digest(other, Split::kTrain));
  EXPECT_EQ(digest("", Split::kEval), digest(other, Split::kEval));
}

TEST_F(HoldOut, AHeldOutSampleIsNeitherAugmentedNorMixed) {
  DataOptions options{
      .train = SyntheticOptions{.samples = 60, .shape = {6, 6, 1}, .classes = 3},
      .normalize = {.mean = {0.5f}, .std = {2}},
      .augment = {.pad_crop = 2, .mixup = 0.5},
      .hold_out = {0.3},
  };
  const DatasetPtr eval = make_dataset(options, Split::kEval);
  EXPECT_EQ(sample(*eval, {.epoch = 0}), sample(*eval, {.epoch = 5}));
  EXPECT_FALSE(eval->mixed());
  EXPECT_LT(std::ranges::max(sample(*eval, {})), 0.25f) << "normalised: (1 - 0.5) / 2";
  const DatasetPtr train = make_dataset(options, Split::kTrain);
  EXPECT_TRUE(train->mixed());
  EXPECT_EQ(train->size() + eval->size(), 60);
}

TEST_F(HoldOut, ImagesGoByTheirFilesContent) {
  std::filesystem::create_directories(folder_.path("a"));
  std::filesystem::create_directories(folder_.path("b"));
  for (int i = 0; i < 40; ++i) {
    folder_.write((i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + ".jpg", jpeg_bytes(gradient(8 + i, 9)));
  }
  const ImageFolderOptions images{.folder = folder_.path(""), .size = 8, .resize = 8};
  const ImageFolderDataset before(images);
  std::set<std::string> contents;
  std::vector<std::string> all;
  for (std::int64_t i = 0; i < before.size(); ++i) all.push_back(content_of(before, i));
  contents.insert(all.begin(), all.end());
  EXPECT_THAT(contents, SizeIs(40));
  EXPECT_EQ(
      make_dataset(held(images, 0.4), Split::kTrain)->size() + make_dataset(held(images, 0.4), Split::kEval)->size(),
      40);
  std::filesystem::rename(folder_.path("a/0.jpg"), folder_.path("b/z.jpg"));
  const ImageFolderDataset after(images);
  EXPECT_EQ(content_of(after, after.size() - 1), all[0]) << "another name and another class";
}

TEST_F(HoldOut, LongFilesGoByTheirSizeAndSomeOfTheirBlocks) {
  constexpr std::size_t kLong = 300'000, kBlock = 64 << 10;
  Bytes bytes(kLong);
  for (std::size_t i = 0; i < kLong; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 % 251);
  const auto hash_of = [this](Bytes content, std::size_t changed) {
    if (changed < content.size()) content[changed] ^= 1;
    Hash128 hash;
    add_sample_of_file(folder_.write("long", content), 2, hash);
    return hash.hex();
  };
  const std::string plain = hash_of(bytes, kLong);
  EXPECT_NE(hash_of(bytes, 0), plain);
  EXPECT_NE(hash_of(bytes, kBlock - 1), plain);
  EXPECT_NE(hash_of(bytes, kLong - 1), plain);
  EXPECT_EQ(hash_of(bytes, 2 * kBlock), plain);
  bytes.insert(bytes.begin() + 2 * kBlock, 4 * kBlock, 0);
  EXPECT_NE(hash_of(bytes, kLong * 9), plain) << "another size";
}

TEST_F(HoldOut, MembersOfShardsGoByTheirBytes) {
  std::vector<TarEntry> entries;
  for (int i = 0; i < 6; ++i) {
    entries.push_back({std::to_string(i) + ".jpg", text_of(jpeg_bytes(gradient(8 + i % 3, 8)))});
    entries.push_back({std::to_string(i) + ".cls", std::to_string(i % 2)});
  }
  const ShardsDataset shards({.files = {folder_.write("s.tar", tar_bytes(entries))}, .size = 8, .resize = 8});
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(content_of(shards, i), content_of(shards, i + 3));
    EXPECT_NE(content_of(shards, i), content_of(shards, (i + 1) % 3));
  }
}

TEST_F(HoldOut, VolumesGoByTheirImagesFiles) {
  std::filesystem::create_directory(folder_.path("images"));
  std::filesystem::create_directory(folder_.path("masks"));
  for (int i = 0; i < 6; ++i) {
    const std::string name = "/" + std::to_string(i) + ".nii";
    folder_.write("images" + name, nifti_bytes({2, 2, 2}, std::vector<float>(8, static_cast<float>(i % 3))));
    folder_.write("masks" + name, nifti_bytes({2, 2, 2}, std::vector<float>(8, static_cast<float>(i % 2))));
  }
  const VolumesOptions options{.images = folder_.path("images"), .masks = folder_.path("masks")};
  const VolumesDataset volumes(options);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(content_of(volumes, i), content_of(volumes, i + 3));
  EXPECT_NE(content_of(volumes, 0), content_of(volumes, 1));
  DataOptions patches = held(options, 0.5);
  patches.augment.volume.patch = Shape{1, 2, 1};
  EXPECT_EQ(make_dataset(patches, Split::kEval)->sample_shape(), (Shape{1, 2, 1, 1}));
}

TEST_F(HoldOut, ArraysAndBytesGoByTheirRows) {
  const std::string features =
      folder_.write("x.npy", npy_bytes("<f4", "(4, 2)", elements_of<float>({1, 2, 3, 4, 1, 2, 3, 5})));
  const std::string targets = folder_.write("y.npy", npy_bytes("<i8", "(4,)", elements_of<std::int64_t>({0, 1, 1, 0})));
  const ArraysDataset arrays({.features = features, .targets = targets});
  EXPECT_EQ(content_of(arrays, 0), content_of(arrays, 2));
  EXPECT_NE(content_of(arrays, 1), content_of(arrays, 3));
  const std::string images = folder_.write("i", idx_bytes({4, 1, 2}, 4)),
                    labels = folder_.write("l", idx_bytes({4}, 3));
  const DatasetPtr idx = IdxKind::open({images, labels});
  EXPECT_EQ(content_of(*idx, 0), content_of(*idx, 2));
  EXPECT_NE(content_of(*idx, 0), content_of(*idx, 1));
}

TEST_F(HoldOut, ASparseRowStaysWhereAnotherHasMoreFeatures) {
  const auto content = [this](const std::string& last) {
    return content_of(SvmlightDataset({.files = {folder_.write_text("t.svm", "0 1:2 3:4\n" + last)}}), 0);
  };
  EXPECT_EQ(content("1 1:1\n"), content("1 9:1\n"));
}

TEST_F(HoldOut, TextsGoByBlocksOfTheirTokens) {
  std::string text;
  for (int i = 0; i < 4000; ++i) text += static_cast<char>('a' + i * i % 23 + i / 400 % 3);
  TokensOptions tokens{.files = {folder_.write_text("t.txt", text)}, .context = 16};
  const TokensDataset plain(tokens);
  const DatasetPtr eval = make_dataset(held(tokens, 0.25), Split::kEval);
  EXPECT_NEAR(static_cast<double>(eval->size()), 0.25 * static_cast<double>(plain.size()), 34) << "five deviations";
  // Which tokens a sample hides does not decide.
  tokens.masked = MaskedTokensOptions{};
  EXPECT_EQ(make_dataset(held(tokens, 0.25), Split::kEval)->size(), eval->size());
  EXPECT_EQ(content_of(*TokensKind::open(tokens), 3), content_of(plain, 3));
  tokens.stride = 8;
  EXPECT_THAT([&] { make_dataset(held(tokens, 0.25), Split::kEval); },
              ThrowsMessage<FieldError>(HasSubstr("data.eval_share: needs samples that share no tokens")));
}

TEST_F(HoldOut, ASideWithoutASampleIsNamed) {
  const CsvOptions few = table("x,y\n0,0\n1,1\n");
  for (const Split split : {Split::kTrain, Split::kEval}) {
    EXPECT_THAT([&] { make_dataset(held(few, 1e-9), split); },
                ThrowsMessage<FieldError>(HasSubstr("1e-09 holds out none of the 2 samples of data.train")));
    EXPECT_THAT([&] { describe(held(few, 0.999999), split); },
                ThrowsMessage<FieldError>(HasSubstr("holds out all of the 2 samples")));
  }
  DataOptions both = held(few, 0.5);
  both.eval = few;
  EXPECT_THAT([&] { make_dataset(both, Split::kEval); }, ThrowsMessage<FieldError>(HasSubstr("in place of data.eval")));
}

TEST(HoldOutClasses, ThoseWithoutASampleAreNamed) {
  EXPECT_EQ(classes_without_evaluation({.classes = 3, .labels = {0, 2, 1}}, {}), "");
  EXPECT_THAT(classes_without_evaluation({.classes = 3, .labels = {0, 2}}, {"cat", "dog", "fox"}),
              HasSubstr("class 1 (\"dog\") has no sample held out"));
  EXPECT_THAT(classes_without_evaluation({.classes = 4, .labels = {2}}, {}),
              HasSubstr("classes 0, 1, 3 have no sample held out"));
  EXPECT_EQ(classes_without_evaluation({.classes = 3}, {}), "") << "labels that only drawing would tell";
}

}  // namespace
}  // namespace lockstep::data
