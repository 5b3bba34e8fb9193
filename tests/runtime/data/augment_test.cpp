// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/augment.h"

#include <gmock/gmock.h>

#include <map>
#include <memory>

#include "runtime/base/error.h"
#include "tests/runtime/data/ramp.h"

namespace lockstep::data {
namespace {

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
    data.target_shape = {8, 4};
    EXPECT_THROW(require_augment(options, data), FieldError);
    data.classes = 0;
    EXPECT_THROW(require_augment(options, data), FieldError);
    data.target_shape = {8, 8};
    if (options.flip) {
      EXPECT_NO_THROW(require_augment(options, data)) << "they move with their pixels";
    } else {
      EXPECT_THROW(require_augment(options, data), FieldError);
    }
    data.target_shape = {5};
    EXPECT_NO_THROW(require_augment(options, data));
  }
}

}  // namespace
}  // namespace lockstep::data
