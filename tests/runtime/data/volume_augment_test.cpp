// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/volume_augment.h"

#include <gmock/gmock.h>

#include <map>
#include <numeric>
#include <set>

#include "runtime/base/error.h"
#include "runtime/data/make_dataset.h"

namespace lockstep::data {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Volumes whose elements are 0, 1, 2, ...; a target tells its voxel.
class VolumeRamp : public Dataset {
 public:
  VolumeRamp(const Shape& sample, const Shape& target, std::int64_t classes = 0, std::int64_t counting = 0)
      : sample_(sample), target_(target), classes_(classes), counting_(counting) {}
  std::int64_t size() const override { return 1 << 20; }
  Shape sample_shape() const override { return sample_; }
  std::int64_t classes() const override { return classes_; }
  Shape target_shape() const override { return target_; }
  std::int64_t targets_per_sample() const override { return counting_ > 0 ? counting_ : Dataset::targets_per_sample(); }
  void get(const SampleKey&, const Sample& sample) const override {
    std::iota(sample.values.begin(), sample.values.end(), 0.0f);
    std::iota(sample.target.begin(), sample.target.end(), 0.0f);
    std::iota(sample.labels.begin(), sample.labels.end(), 0);
  }

 private:
  Shape sample_;
  Shape target_;
  std::int64_t classes_;
  std::int64_t counting_;
};

struct DrawnVolume {
  std::vector<float> values;
  std::vector<float> target;
  std::vector<std::int64_t> labels;

  DrawnVolume(const Dataset& dataset, const SampleKey& key)
      : values(static_cast<std::size_t>(dataset.sample_shape().numel())),
        target(static_cast<std::size_t>(dataset.classes() > 0 ? 0 : dataset.target_shape().numel())),
        labels(static_cast<std::size_t>(dataset.classes() > 0 ? dataset.target_shape().numel() : 0)) {
    dataset.get(key, {.values = values, .target = target, .labels = labels});
  }
};

DatasetPtr ramp(const Shape& sample, const Shape& target, std::int64_t classes = 0, std::int64_t counting = 0) {
  return std::make_shared<VolumeRamp>(sample, target, classes, counting);
}

constexpr std::int64_t kManyVolumes = 2000;

TEST(Patch, TakesEveryWindowAndTargetsMoveWithTheirVoxels) {
  for (const std::int64_t classes : {0, 1000}) {
    const Patch patch(ramp({3, 4, 2, 2}, {3, 4, 2}, classes), {2, 2, 2}, Patch::Place::kRandom);
    EXPECT_EQ(patch.sample_shape(), (Shape{2, 2, 2, 2}));
    EXPECT_EQ(patch.target_shape(), (Shape{2, 2, 2}));
    EXPECT_EQ(patch.targets_per_sample(), classes > 0 ? 8 : 1);
    std::map<float, int> corners;
    for (std::int64_t i = 0; i < kManyVolumes; ++i) {
      const DrawnVolume drawn(patch, {.index = i});
      ++corners[drawn.values[0]];
      for (std::size_t voxel = 0; voxel < 8; ++voxel) {
        const auto target = classes > 0 ? static_cast<float>(drawn.labels[voxel]) : drawn.target[voxel];
        ASSERT_EQ(drawn.values[2 * voxel], 2 * target);
        ASSERT_EQ(drawn.values[2 * voxel + 1], 2 * target + 1);
      }
    }
    // The first voxel of a window stands in 2 x 3 x 1 places.
    EXPECT_EQ(corners.size(), 6u);
    for (const auto& [corner, count] : corners) EXPECT_NEAR(count, kManyVolumes / 6.0, 100) << corner;
  }
}

TEST(Patch, OfEvaluationIsTheOneInTheMiddle) {
  const Patch patch(ramp({4, 5, 2, 1}, {}, 30), {2, 3, 2}, Patch::Place::kMiddle);
  const DrawnVolume drawn(patch, {.index = 9, .seed = 3});
  EXPECT_EQ(drawn.values[0], (1 * 5 + 1) * 2);
  EXPECT_EQ(drawn.values.back(), (2 * 5 + 3) * 2 + 1);
  EXPECT_EQ(drawn.labels[0], 0) << "a label a sample stays";
}

TEST(Patch, RefusesDataItCannotCut) {
  const auto cut = [](const DatasetPtr& base, const Shape& patch) {
    return [base, patch] { Patch(base, patch, Patch::Place::kRandom); };
  };
  EXPECT_THAT(cut(ramp({4, 4, 4, 1}, {4, 4, 4}), {2, 5, 2}),
              ThrowsMessage<FieldError>(HasSubstr("data.augment.patch: [2, 5, 2] is no window")));
  EXPECT_THAT(cut(ramp({4, 4, 4, 1}, {4, 4, 4}), {2, 0, 2}),
              ThrowsMessage<FieldError>(HasSubstr("data.augment.patch[1]: must be >= 1")));
  EXPECT_THAT(cut(ramp({4, 4, 4, 1}, {4, 4, 4}), {2, 2}),
              ThrowsMessage<FieldError>(HasSubstr("must be of 3 extents, is 2")));
  EXPECT_THAT(cut(ramp({4, 4, 1}, {4, 4}), {2, 2, 2}), ThrowsMessage<FieldError>(HasSubstr("needs volumes")));
  EXPECT_THAT(cut(ramp({4, 4, 4, 1}, {8, 8, 8}), {2, 2, 2}), ThrowsMessage<FieldError>(HasSubstr("sample or a voxel")));
  EXPECT_THAT(cut(ramp({4, 4, 4, 1}, {4, 4, 4}, 2, 5), {2, 2, 2}),
              ThrowsMessage<FieldError>(HasSubstr("every voxel's label counts")));
}

TEST(Mirror, TurnsEachAxisHalfOfTheTimeAndTargetsAlike) {
  for (const std::int64_t classes : {0, 1000}) {
    const Mirror mirror(ramp({2, 3, 2, 2}, {2, 3, 2}, classes));
    std::map<std::vector<float>, int> seen;
    for (std::int64_t i = 0; i < kManyVolumes; ++i) {
      const DrawnVolume drawn(mirror, {.index = i});
      ++seen[drawn.values];
      for (std::size_t voxel = 0; voxel < 12; ++voxel) {
        const auto target = classes > 0 ? static_cast<float>(drawn.labels[voxel]) : drawn.target[voxel];
        ASSERT_EQ(drawn.values[2 * voxel], 2 * target);
      }
    }
    EXPECT_EQ(seen.size(), 8u);
    for (const auto& [volume, count] : seen) EXPECT_NEAR(count, kManyVolumes / 8.0, 80);
  }
  const Mirror whole(ramp({1, 1, 3, 1}, {}, 5));
  for (std::int64_t i = 0; i < 20; ++i) {
    EXPECT_THAT(DrawnVolume(whole, {.index = i}).values,
                testing::AnyOf(testing::ElementsAre(0, 1, 2), testing::ElementsAre(2, 1, 0)));
  }
}

TEST(Intensity, ScalesAndShiftsSamplesAndLeavesTargets) {
  const Intensity intensity(ramp({1, 1, 2, 1}, {1, 1, 2}), 0.5, 3);
  double least = 1, most = 1, lowest = 0, highest = 0;
  for (std::int64_t i = 0; i < kManyVolumes; ++i) {
    const DrawnVolume drawn(intensity, {.index = i});
    const double shift = static_cast<double>(drawn.values[0]);
    const double factor = static_cast<double>(drawn.values[1]) - shift;
    least = std::min(least, factor);
    most = std::max(most, factor);
    lowest = std::min(lowest, shift);
    highest = std::max(highest, shift);
    ASSERT_THAT(drawn.target, testing::ElementsAre(0, 1));
  }
  EXPECT_NEAR(least, 0.5, 0.01);
  EXPECT_NEAR(most, 1.5, 0.01);
  EXPECT_NEAR(lowest, -3, 0.05);
  EXPECT_NEAR(highest, 3, 0.05);
}

TEST(VolumeAugmentation, FollowsSeedEpochAndIndexAlone) {
  const DataOptions options{
      .train = SpheresOptions{.samples = 1000, .shape = {8, 8, 8, 1}, .noise = 0},
      .augment = {.volume = {.patch = Shape{4, 6, 8}, .mirror = true, .intensity_scale = 0.1, .intensity_shift = 0.1}}};
  const DatasetPtr a = make_dataset(options, Split::kTrain), b = make_dataset(options, Split::kTrain);
  const auto differ = [&](const SampleKey& other) {
    return DrawnVolume(*a, {.index = 5}).values != DrawnVolume(*b, other).values;
  };
  EXPECT_FALSE(differ({.index = 5}));
  EXPECT_TRUE(differ({.index = 5, .epoch = 1}));
  EXPECT_TRUE(differ({.index = 5, .seed = 1}));
  EXPECT_EQ(describe(options, Split::kTrain).sample_shape, a->sample_shape());
  EXPECT_EQ(a->target_shape(), (Shape{4, 6, 8}));
}

TEST(VolumeAugmentation, RefusesDataThatDoNotFit) {
  const auto refusal = [](const VolumeAugmentOptions& options, const Description& data) {
    return [options, data] { require_volume_augment(options, data); };
  };
  const Description volumes{.sample_shape = {4, 4, 4, 1}, .target_shape = {4, 4, 4}};
  EXPECT_NO_THROW(require_volume_augment({.mirror = true, .intensity_scale = 0.5, .intensity_shift = 9}, volumes));
  EXPECT_THAT(refusal({.mirror = true}, {.sample_shape = {8, 8, 1}, .classes = 2}),
              ThrowsMessage<FieldError>(HasSubstr("data.augment.mirror: needs volumes")));
  EXPECT_THAT(refusal({.mirror = true}, {.sample_shape = {4, 4, 4, 1}, .target_shape = {2, 2, 2}}),
              ThrowsMessage<FieldError>(HasSubstr("sample or a voxel")));
  EXPECT_THAT(refusal({.intensity_scale = 1}, volumes), ThrowsMessage<FieldError>(HasSubstr("intensity_scale")));
  EXPECT_THAT(refusal({.intensity_shift = -1}, volumes), ThrowsMessage<FieldError>(HasSubstr("intensity_shift")));
  EXPECT_THAT(refusal({.intensity_shift = 1}, {.sample_shape = {4}, .vocabulary = 3, .classes = 3}),
              ThrowsMessage<FieldError>(HasSubstr("tokens")));
}

}  // namespace
}  // namespace lockstep::data
