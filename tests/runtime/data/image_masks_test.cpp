// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/image_masks.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/data/data_digest.h"
#include "runtime/data/make_dataset.h"
#include "tests/runtime/data/image_files.h"

namespace lockstep::data {
namespace {

using nlohmann::json;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A mask of one class.
Bytes mask_of(int width, int height, int value) {
  return png_bytes(
      {width, height, 1, Bytes(static_cast<std::size_t>(width * height), static_cast<std::uint8_t>(value))});
}

class ImageMasksTest : public testing::Test {
 protected:
  ImageMasksTest() {
    for (const char* name : {"images", "masks"}) std::filesystem::create_directory(folder_.path(name));
  }
  void write_pair(const std::string& stem, const Pixels& image, const Bytes& mask) const {
    folder_.write("images/" + stem + ".png", png_bytes(image));
    folder_.write("masks/" + stem + ".png", mask);
  }
  ImageMasksOptions options(std::int64_t size = 8) const {
    return {.images = folder_.path("images"), .masks = folder_.path("masks"), .size = size};
  }
  std::string error(const ImageMasksOptions& options) const {
    return error_of([&] { drawn(ImageMasksDataset(options), {}); });
  }

  TemporaryFolder folder_;
};

TEST_F(ImageMasksTest, PairsAreFoundByNameAndClassesCounted) {
  write_pair("b", gradient(8, 8), mask_of(8, 8, 3));
  folder_.write("images/a.jpg", jpeg_bytes(gradient(8, 8)));
  folder_.write("masks/a.png", mask_of(8, 8, 1));
  folder_.write("images/notes.txt", {1});
  folder_.write("images/c.gif", {1});
  const ImageMasksDataset set(options());
  EXPECT_EQ(set.size(), 2);
  EXPECT_EQ(set.sample_shape(), (Shape{8, 8, 3}));
  EXPECT_EQ(set.target_shape(), (Shape{8, 8}));
  EXPECT_EQ(set.classes(), 4);
  EXPECT_THAT(drawn(set, {.index = 0}).labels, Each(1));
  EXPECT_THAT(drawn(set, {.index = 1}).labels, Each(3));
  EXPECT_THAT(set.describe().remarks, ElementsAre(HasSubstr("1 .gif (the first: c.gif)")));
}

TEST_F(ImageMasksTest, TheMaskIsTheImagesOwnWindow) {
  // The mask is the image's red, in steps: the window's class is its red, wherever it lies.
  Pixels image{40, 24, 3, {}}, mask{40, 24, 1, {}};
  for (int y = 0; y < 24; ++y) {
    for (int x = 0; x < 40; ++x) {
      const auto value = static_cast<std::uint8_t>(x / 8 + 5 * (y / 8));
      for (const int level : {10 * value, 0, 0}) image.values.push_back(static_cast<std::uint8_t>(level));
      mask.values.push_back(value);
    }
  }
  write_pair("a", image, png_bytes(mask));
  DataOptions both{.train = options(8), .eval = options(8)};
  std::get<ImageMasksOptions>(both.train).resize = 24;
  both.augment.flip = true;
  const auto expect_same = [](const Drawn& sample) {
    for (std::size_t i = 0; i < sample.labels.size(); ++i) {
      EXPECT_NEAR(sample.values[3 * i] * 255, static_cast<float>(10 * sample.labels[i]), 0.01f) << i;
    }
  };
  const DatasetPtr train = make_dataset(both, Split::kTrain);
  std::set<std::vector<std::int64_t>> windows;
  for (std::uint64_t epoch = 0; epoch < 40; ++epoch) {
    const SampleKey key{.epoch = epoch, .seed = 3};
    const Drawn sample = drawn(*train, key);
    EXPECT_EQ(sample, drawn(*train, key));
    expect_same(sample);
    windows.insert(sample.labels);
  }
  EXPECT_GT(windows.size(), 20u);
  const DatasetPtr eval = make_dataset(both, Split::kEval);
  EXPECT_EQ(drawn(*eval, {.epoch = 1}), drawn(*eval, {.epoch = 2}));
  EXPECT_EQ(eval->classes(), 15);
  // Scaled down by three, the third of thirteen columns lies above column 7, the fourth above column 10.
  EXPECT_EQ(drawn(*eval, {}).labels[0], 0);
  EXPECT_EQ(drawn(*eval, {}).labels[1], 1);
  both.augment.random_resized_crop = RandomResizedCropOptions{.min_area = 0.9, .max_area = 0.9};
  const Drawn scaled = drawn(*make_dataset(both, Split::kTrain), {.epoch = 1});
  std::int64_t near = 0;
  for (std::size_t i = 0; i < scaled.labels.size(); ++i) {
    near += std::abs(scaled.values[3 * i] * 255 - static_cast<float>(10 * scaled.labels[i])) < 30 ? 1 : 0;
  }
  EXPECT_GT(near, 50);
}

TEST_F(ImageMasksTest, MasksAreScaledAsPilsNearest) {
  const json golden = json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/images.json"));
  for (const auto& [name, mask] : golden["masks"].items()) {
    Bytes file;
    const std::string digits = mask["file"];
    for (std::size_t i = 0; i < digits.size(); i += 2) {
      file.push_back(static_cast<std::uint8_t>(std::stoi(digits.substr(i, 2), nullptr, 16)));
    }
    write_pair("a", gradient(mask["width"], mask["height"]), file);
    ImageMasksOptions options = this->options(mask["size"]);
    options.resize = mask["resize"];
    options.classes = 16;
    EXPECT_EQ(drawn(ImageMasksDataset(options), {}).labels, mask["values"].get<std::vector<std::int64_t>>()) << name;
  }
}

TEST_F(ImageMasksTest, PixelsThatAreIgnoredHaveNoClass) {
  Pixels mask{2, 2, 1, {0, 255, 2, 7}};
  write_pair("a", gradient(2, 2), png_bytes(mask));
  ImageMasksOptions options = this->options(2);
  EXPECT_THAT(drawn(ImageMasksDataset(options), {}).labels, ElementsAre(0, kIgnoredLabel, 2, 7));
  options.ignore = 7;
  options.classes = 3;
  EXPECT_THAT(error(options), HasSubstr("a.png (sample 0): the mask holds 255, which is none of the 3 classes"));
  mask.values[1] = 1;
  folder_.write("masks/a.png", png_bytes(mask));
  EXPECT_THAT(drawn(ImageMasksDataset(options), {}).labels, ElementsAre(0, 1, 2, kIgnoredLabel));
}

TEST_F(ImageMasksTest, MasksOfOneThingAreNumbers) {
  write_pair("a", gradient(2, 2), png_bytes({2, 2, 1, {0, 255, 0, 255}}));
  EXPECT_THAT(error(options(2)), HasSubstr("the masks hold no class but 0, and 255, which is ignored"));
  ImageMasksOptions options = this->options(2);
  options.target_kind = TargetKind::kNumbers;
  const ImageMasksDataset set(options);
  EXPECT_EQ(set.classes(), 0);
  EXPECT_EQ(ImageMasksKind::targets(options), Targets::kMasks);
  EXPECT_THAT(drawn(set, {}).target, ElementsAre(0, 1, 0, 1));
  folder_.write("masks/a.png", png_bytes({2, 2, 1, {0, 1, 0, 1}}));
  EXPECT_THAT(error(options), HasSubstr("the mask holds 1, where 255 stands for all"));
}

TEST_F(ImageMasksTest, WhatHasNoPartnerOrDoesNotFitIsNamed) {
  write_pair("a", gradient(8, 8), mask_of(8, 6, 1));
  EXPECT_THAT(error(options()), HasSubstr("a.png (sample 0) has 8 x 8 pixels, but its mask 8 x 6"));
  folder_.write("masks/a.png", png_bytes(gradient(8, 8)));
  EXPECT_THAT(error(options()), HasSubstr("masks/a.png: is an image of colours"));
  folder_.write("masks/a.png", {0x89, 'P', 'N', 'G', 1, 2, 3});
  EXPECT_THAT(error(options()), HasSubstr("masks/a.png: cannot be decoded"));
  for (const char* name : {"images/b.png", "images/c.jpg", "masks/d.png"}) folder_.write(name, {1});
  EXPECT_THAT(error(options()), HasSubstr("2 of the images have no mask in " + folder_.path("masks") +
                                          ": b.png, c.jpg; 1 of the masks have no image in"));
  folder_.write("images/a.jpg", {1});
  EXPECT_THAT(error(options()), HasSubstr("are images of one name"));
}

TEST_F(ImageMasksTest, TheDigestFollowsImagesAndMasks) {
  write_pair("a", gradient(8, 8), mask_of(8, 8, 1));
  const auto digest = [&] { return digest_of("d", ImageMasksDataset(options())); };
  const DataDigest one = digest();
  EXPECT_EQ(digest().labels, one.labels);
  folder_.write("masks/a.png", mask_of(8, 8, 2));
  EXPECT_NE(digest().labels, one.labels);
  EXPECT_EQ(digest().content, one.content);
  folder_.write("images/a.png", png_bytes(gradient(8, 8, 1)));
  EXPECT_NE(digest().content, one.content);
}

TEST(ImageMasksOptionsTest, WithoutAMeaningAreRefused) {
  const auto field = [](ImageMasksOptions options) {
    options.images = options.masks = "folder";
    const FieldProblems problems = problems_of(options);
    return problems.empty() ? "" : problems[0].field;
  };
  EXPECT_EQ(field({}), "");
  EXPECT_EQ(field({.size = 0}), "size");
  EXPECT_EQ(field({.size = 8, .resize = 7}), "resize");
  EXPECT_EQ(field({.target_kind = TargetKind::kNumbers, .classes = 2}), "classes");
  EXPECT_EQ(field({.classes = 257}), "classes");
  EXPECT_EQ(field({.ignore = 256}), "ignore");
}

}  // namespace
}  // namespace lockstep::data
