// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/make_dataset.h"

#include <gmock/gmock.h>

#include "runtime/base/error.h"
#include "runtime/data/augment.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

const std::string kDigits = LOCKSTEP_SOURCE_DIR "/configs/data/digits/";

DataOptions digits() {
  return {.train = IdxOptions{kDigits + "train-images-idx3-ubyte.gz", kDigits + "train-labels-idx1-ubyte.gz"},
          .eval = IdxOptions{kDigits + "test-images-idx3-ubyte.gz", kDigits + "test-labels-idx1-ubyte.gz"},
          .normalize = {.mean = {0.3f}, .std = {0.35f}},
          .augment = {.pad_crop = 1}};
}

TEST(MakeDataset, GivesTheShippedDigits) {
  const DatasetPtr train = make_dataset(digits(), Split::kTrain);
  const DatasetPtr test = make_dataset(digits(), Split::kEval);
  EXPECT_EQ(train->size(), 1500);
  EXPECT_EQ(test->size(), 297);
  EXPECT_EQ(train->sample_shape(), (Shape{8, 8, 1}));
  EXPECT_EQ(train->classes(), 10);
  EXPECT_EQ(test->classes(), 10);
  EXPECT_NE(sample(*train, {.epoch = 0}), sample(*train, {.epoch = 2})) << "training images move";
  EXPECT_EQ(sample(*test, {.epoch = 0}), sample(*test, {.epoch = 2})) << "test images do not";
  EXPECT_FLOAT_EQ(std::ranges::min(sample(*test, {})), -0.3f / 0.35f);
}

TEST(MakeDataset, GivesRegressionData) {
  const SyntheticOptions generated{.samples = 8, .shape = {6}, .target_size = 3};
  const DataOptions options{.train = generated, .eval = generated};
  const DatasetPtr train = make_dataset(options, Split::kTrain);
  EXPECT_EQ(train->classes(), 0);
  EXPECT_EQ(train->target_shape(), (Shape{3}));
  EXPECT_NE(sample(*train, {}), sample(*make_dataset(options, Split::kEval), {})) << "generated splits differ";
}

TEST(MakeDataset, TakesTheClassesOfEvaluationDataFromTheTrainingLabels) {
  DataOptions options = digits();
  std::get<IdxOptions>(options.train).classes = 17;
  EXPECT_EQ(describe(options, Split::kEval).classes, 17);
  std::get<IdxOptions>(*options.eval).classes = 12;
  EXPECT_EQ(describe(options, Split::kEval).classes, 12);
}

/// The field that is named for options without a meaning, by make_dataset() and, where the files' headers tell, by
/// describe().
std::string refused_field(const DataOptions& options, Split split = Split::kTrain) {
  const auto field = [](auto&& act) -> std::string {
    try {
      act();
    } catch (const FieldError& error) {
      return error.path();
    }
    return "none";
  };
  const std::string described = field([&] { describe(options, split); });
  const std::string made = field([&] { make_dataset(options, split); });
  EXPECT_TRUE(described == made || described == "none") << described;
  return made;
}

TEST(MakeDataset, NamesTheOptionWithoutAMeaning) {
  EXPECT_EQ(refused_field({}), "data.train.idx.images");
  EXPECT_EQ(refused_field({}, Split::kEval), "data.eval");
  EXPECT_EQ(refused_field({.train = IdxOptions{.images = "a"}}), "data.train.idx.labels");
  EXPECT_EQ(refused_field({.train = IdxOptions{"a", "b", -1}}), "data.train.idx.classes");
  EXPECT_EQ(refused_field({.train = CifarOptions{}}), "data.train.cifar.files");
  EXPECT_EQ(refused_field({.train = CifarOptions{{"a", ""}}}), "data.train.cifar.files[1]");
  EXPECT_EQ(refused_field({.train = {}, .eval = CifarOptions{}}, Split::kEval), "data.eval.cifar.files");

  const SyntheticOptions sound{.samples = 4, .shape = {2, 3, 1}, .classes = 2};
  EXPECT_EQ(refused_field({.train = sound}), "none");
  const auto changed = [&sound](auto&& change) {
    SyntheticOptions options = sound;
    change(options);
    return refused_field({.train = options});
  };
  EXPECT_EQ(changed([](SyntheticOptions& o) { o.samples = 0; }), "data.train.synthetic.samples");
  EXPECT_EQ(changed([](SyntheticOptions& o) { o.shape = {}; }), "data.train.synthetic.shape");
  EXPECT_EQ(changed([](SyntheticOptions& o) { o.shape = {2, 0}; }), "data.train.synthetic.shape[1]");
  EXPECT_EQ(changed([](SyntheticOptions& o) { o.classes = -1; }), "data.train.synthetic.classes");
  EXPECT_EQ(changed([](SyntheticOptions& o) { o.classes = 0; }), "data.train.synthetic.target_size");
  EXPECT_EQ(changed([](SyntheticOptions& o) { o.target_size = 1; }), "data.train.synthetic.target_size");
  EXPECT_EQ(changed([](SyntheticOptions& o) { o.first_sample = -1; }), "data.train.synthetic.first_sample");

  EXPECT_EQ(refused_field({.train = sound, .normalize = {.std = {0}}}), "data.normalize.std[0]");
  EXPECT_EQ(refused_field({.train = sound, .normalize = {.mean = {NAN}}}), "data.normalize.mean[0]");
  EXPECT_EQ(refused_field({.train = sound, .normalize = {.std = {1, 2}}}), "data.normalize.std");
  EXPECT_EQ(refused_field({.train = sound, .augment = {.pad_crop = -1}}), "data.augment.pad_crop");
  EXPECT_EQ(refused_field({.train = sound, .augment = {.pad_crop = 3}}), "data.augment.pad_crop");
  EXPECT_EQ(refused_field({.train = SyntheticOptions{4, {2}, 2}, .augment = {.flip = true}}), "data.augment.flip");
}

}  // namespace
}  // namespace lockstep::data
