// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "runtime/base/counter_rng.h"
#include "runtime/base/error.h"
#include "runtime/data/augment.h"
#include "runtime/data/make_dataset.h"
#include "runtime/data/normalize.h"
#include "runtime/data/synthetic.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

/// One image [h, w, c] whose elements are 1, 2, 3, ...
class Ramp : public Dataset {
 public:
  explicit Ramp(const Shape& shape) : shape_(shape) {}
  std::int64_t size() const override { return 1 << 20; }
  Shape sample_shape() const override { return shape_; }
  std::int64_t classes() const override { return 2; }
  void get(const SampleKey&, const Sample& sample) const override {
    std::iota(sample.values.begin(), sample.values.end(), 1.0f);
    sample.labels[0] = 1;
  }

 private:
  Shape shape_;
};

/// The window of a zero-padded image, written out element by element.
std::vector<float> window(const std::vector<float>& image, const Shape& shape, std::int64_t down, std::int64_t right) {
  std::vector<float> out;
  for (std::int64_t y = 0; y < shape[0]; ++y) {
    for (std::int64_t x = 0; x < shape[1]; ++x) {
      for (std::int64_t c = 0; c < shape[2]; ++c) {
        const bool inside = y + down >= 0 && y + down < shape[0] && x + right >= 0 && x + right < shape[1];
        const std::int64_t at = ((y + down) * shape[1] + x + right) * shape[2] + c;
        out.push_back(inside ? image[static_cast<std::size_t>(at)] : 0.0f);
      }
    }
  }
  return out;
}

TEST(PadCrop, GivesEveryWindowOfThePaddedImage) {
  const Shape shape{3, 4, 2};
  const auto ramp = std::make_shared<Ramp>(shape);
  const std::vector<float> image = sample(*ramp, {});
  for (const std::int64_t pad : {1, 2, 3}) {
    std::map<std::vector<float>, int> seen;
    const PadCrop crop(ramp, pad);
    for (std::int64_t i = 0; i < 2000; ++i) ++seen[sample(crop, {.index = i})];
    for (std::int64_t down = -pad; down <= pad; ++down) {
      for (std::int64_t right = -pad; right <= pad; ++right) seen.erase(window(image, shape, down, right));
    }
    EXPECT_TRUE(seen.empty()) << "pad " << pad;
  }
}

TEST(PadCrop, ShiftsEvenly) {
  const auto ramp = std::make_shared<Ramp>(Shape{3, 3, 1});
  std::map<std::vector<float>, int> seen;
  for (std::int64_t i = 0; i < 9000; ++i) ++seen[sample(PadCrop(ramp, 1), {.index = i})];
  EXPECT_EQ(seen.size(), 9u);
  for (const auto& [image, count] : seen) EXPECT_NEAR(count, 1000, 150);
}

TEST(Flip, MirrorsHalfOfTheTime) {
  const auto ramp = std::make_shared<Ramp>(Shape{1, 3, 2});
  const Flip flip(ramp);
  int mirrored = 0;
  for (std::int64_t i = 0; i < 4000; ++i) {
    const std::vector<float> image = sample(flip, {.index = i});
    if (image != std::vector<float>{1, 2, 3, 4, 5, 6}) {
      EXPECT_EQ(image, (std::vector<float>{5, 6, 3, 4, 1, 2}));
      ++mirrored;
    }
  }
  EXPECT_NEAR(mirrored, 2000, 200);
}

TEST(Augmentation, FollowsSeedEpochAndIndexAlone) {
  const auto ramp = std::make_shared<Ramp>(Shape{9, 9, 1});
  const Flip a(std::make_shared<PadCrop>(ramp, 4));
  const Flip b(std::make_shared<PadCrop>(ramp, 4));
  const auto differing = [&](const SampleKey& change) {
    int differ = 0;
    for (std::int64_t i = 0; i < 100; ++i) {
      const SampleKey moved{.index = i + change.index, .epoch = change.epoch, .seed = change.seed};
      differ += sample(a, {.index = i}) != sample(b, moved);
    }
    return differ;
  };
  EXPECT_EQ(differing({}), 0);
  EXPECT_GT(differing({.index = 1}), 90);
  EXPECT_GT(differing({.epoch = 1}), 90);
  EXPECT_GT(differing({.seed = 1}), 90);
}

TEST(Augmentation, NeedsImages) {
  const auto vectors = std::make_shared<Ramp>(Shape{9});
  EXPECT_THROW(PadCrop(vectors, 1), UsageError);
  EXPECT_THROW(Flip{vectors}, UsageError);
  EXPECT_THROW(PadCrop(std::make_shared<Ramp>(Shape{2, 9, 1}), 3), UsageError);
}

TEST(Augmentation, DoesNotMoveImagesWhoseTargetsStay) {
  for (const AugmentOptions& options : {AugmentOptions{.pad_crop = 1}, AugmentOptions{.flip = true}}) {
    Description data{.sample_shape = {8, 8, 3}, .classes = 4};
    EXPECT_NO_THROW(require_augment(options, data));
    data.target_shape = {8, 8};
    EXPECT_THROW(require_augment(options, data), FieldError);
    data.classes = 0;
    EXPECT_THROW(require_augment(options, data), FieldError);
    data.target_shape = {5};
    EXPECT_NO_THROW(require_augment(options, data));
  }
}

TEST(Normalize, IsForNumbers) {
  EXPECT_THROW(require_normalize({.mean = {0.5f}}, {.sample_shape = {8}, .vocabulary = 4}), FieldError);
  EXPECT_NO_THROW(require_normalize({}, {.sample_shape = {8}, .vocabulary = 4}));
}

TEST(Normalize, WorksByChannelOrForAll) {
  const auto ramp = std::make_shared<Ramp>(Shape{1, 2, 2});
  EXPECT_THAT(sample(Normalize(ramp, {{1}, {2}}), {}), testing::ElementsAre(0, 0.5, 1, 1.5));
  EXPECT_THAT(sample(Normalize(ramp, {{1, 2}, {2, 4}}), {}), testing::ElementsAre(0, 0, 1, 0.5));
  EXPECT_THAT(sample(Normalize(ramp, {{}, {2, 4}}), {}), testing::ElementsAre(0.5, 0.5, 1.5, 1));
  EXPECT_THAT(sample(Normalize(ramp, {{1}, {}}), {}), testing::ElementsAre(0, 1, 2, 3));
  EXPECT_THROW(Normalize(ramp, {{1, 2, 3}, {}}), UsageError);
}

TEST(Synthetic, ClassesCanBeToldApart) {
  const SyntheticDataset set({.samples = 500, .shape = {64}, .classes = 4});
  std::map<std::int64_t, std::vector<float>> first;
  std::map<std::int64_t, int> count;
  for (std::int64_t i = 0; i < set.size(); ++i) {
    const std::vector<float> values = sample(set, {.index = i});
    for (const float value : values) ASSERT_TRUE(value >= 0 && value < 1);
    ++count[label(set, i)];
  }
  EXPECT_EQ(count.size(), 4u);
  const auto distance = [&](std::int64_t i, std::int64_t k) {
    const std::vector<float> a = sample(set, {.index = i});
    const std::vector<float> b = sample(set, {.index = k});
    float sum = 0;
    for (std::size_t at = 0; at < a.size(); ++at) sum += (a[at] - b[at]) * (a[at] - b[at]);
    return sum;
  };
  double same = 0, other = 0;
  int sames = 0, others = 0;
  for (std::int64_t i = 0; i < 50; ++i) {
    for (std::int64_t k = 0; k < i; ++k) {
      (label(set, i) == label(set, k) ? same : other) += distance(i, k);
      ++(label(set, i) == label(set, k) ? sames : others);
    }
  }
  EXPECT_LT(1.5 * same / sames, other / others);
}

TEST(Synthetic, NumbersDoNotDependOnTheThreadsThatDrawThem) {
  // Enough for several threads, and no multiple of what they share.
  const std::int64_t size = (3 << 20) + 7;
  const SyntheticDataset set({.samples = 3, .shape = {size}, .classes = 1});
  const CounterRng patterns(0, CounterRng::Purpose::kSynthetic, 0);
  const CounterRng noise(0, CounterRng::Purpose::kSynthetic, 1);
  const CounterRng samples(0, CounterRng::Purpose::kSynthetic, 2);
  const std::vector<float> values = sample(set, {.index = 2});
  const std::uint64_t offset = samples.block(2)[1] % 65536;
  std::int64_t wrong = 0;
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0.5f * patterns.uniform(i) + 0.5f * noise.uniform(offset + i)) ++wrong;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Synthetic, RegressionTargetsAreAFunctionOfTheSample) {
  const SyntheticDataset set({.samples = 10, .shape = {6}, .target_size = 3});
  EXPECT_EQ(set.target_shape(), (Shape{3}));
  std::vector<float> input(6);
  std::vector<float> answer(3);
  set.get({.index = 4}, {.values = input, .target = answer});
  for (std::size_t t = 0; t < 3; ++t) EXPECT_EQ(answer[t], input[t] - input[t + 3]);
}

TEST(Synthetic, TestSamplesAreOthersThanTrainingSamples) {
  const SyntheticDataset train({.samples = 10, .shape = {6}, .classes = 2});
  const SyntheticDataset test({.samples = 10, .shape = {6}, .classes = 2, .first_sample = 1 << 20});
  EXPECT_NE(sample(train, {}), sample(test, {}));
  EXPECT_EQ(sample(train, {.seed = 1}), sample(train, {.seed = 2}));
}

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
