// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/spheres.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "runtime/base/error.h"
#include "runtime/data/make_dataset.h"

namespace lockstep::data {
namespace {

struct Volume {
  std::vector<float> values;
  std::vector<float> mask;

  explicit Volume(const Dataset& dataset, std::int64_t index = 0)
      : values(static_cast<std::size_t>(dataset.sample_shape().numel())),
        mask(static_cast<std::size_t>(dataset.target_shape().numel())) {
    dataset.get({.index = index}, {.values = values, .target = mask});
  }
};

TEST(Spheres, HaveAMaskAndNoiseOfTheDeviationThatIsAskedFor) {
  const SpheresDataset set({.samples = 2, .shape = {16, 12, 20, 2}, .noise = 0.25});
  EXPECT_EQ(set.target_shape(), (Shape{16, 12, 20}));
  const Volume volume(set, 1);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < volume.values.size(); ++i) {
    const double noise = static_cast<double>(volume.values[i]) - static_cast<double>(volume.mask[i / 2]);
    sum += noise;
    squares += noise * noise;
  }
  const auto count = static_cast<double>(volume.values.size());
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(std::sqrt(squares / count), 0.25, 0.01);
  EXPECT_NE(volume.values[0], volume.values[1]) << "each channel has noise of its own";
}

TEST(Spheres, OfARadiusHaveItsVolume) {
  const SpheresDataset set({.samples = 200, .shape = {40, 40, 40, 1}, .most = 1, .min_radius = 6, .max_radius = 6});
  double largest = 0;
  for (std::int64_t i = 0; i < set.size(); ++i) {
    const Volume volume(set, i);
    const double marked = static_cast<double>(std::ranges::count(volume.mask, 1.0f));
    EXPECT_EQ(marked + static_cast<double>(std::ranges::count(volume.mask, 0.0f)), 40.0 * 40 * 40);
    EXPECT_GT(marked, 0) << "a centre lies in the volume";
    largest = std::max(largest, marked);
  }
  constexpr double kWhole = 4.0 / 3 * 3.14159265 * 6 * 6 * 6;
  EXPECT_NEAR(largest, kWhole, 0.05 * kWhole) << "some lie wholly inside";
}

TEST(Spheres, FollowTheirIndexAloneAndEvaluationHasOthers) {
  const SpheresOptions options{.samples = 8, .shape = {8, 8, 8, 1}};
  const SpheresDataset set(options);
  std::vector<float> values(512), mask(512);
  set.get({.index = 3, .epoch = 5, .seed = 7}, {.values = values, .target = mask});
  EXPECT_EQ(Volume(set, 3).values, values);
  EXPECT_EQ(Volume(set, 3).mask, mask);
  std::set<std::vector<float>> all;
  const DataOptions data{.train = options, .eval = options};
  for (const Split split : {Split::kTrain, Split::kEval}) {
    const DatasetPtr dataset = make_dataset(data, split);
    for (std::int64_t i = 0; i < dataset->size(); ++i) all.insert(Volume(*dataset, i).values);
  }
  EXPECT_EQ(all.size(), 16u);
}

TEST(Spheres, RefuseOptionsWithoutAMeaning) {
  const SpheresOptions fine{.samples = 1, .shape = {4, 4, 4, 1}};
  EXPECT_TRUE(problems_of(fine).empty());
  const auto field_of = [&fine](const std::function<void(SpheresOptions&)>& change) {
    SpheresOptions options = fine;
    change(options);
    const FieldProblems problems = problems_of(options);
    EXPECT_THROW(SpheresDataset{options}, FieldError);
    return problems.empty() ? std::string() : problems.front().field;
  };
  EXPECT_EQ(field_of([](auto& o) { o.samples = 0; }), "samples");
  EXPECT_EQ(field_of([](auto& o) { o.shape = {4, 4, 4}; }), "shape");
  EXPECT_EQ(field_of([](auto& o) { o.shape = {4, 0, 4, 1}; }), "shape[1]");
  EXPECT_EQ(field_of([](auto& o) { o.most = 0; }), "most");
  EXPECT_EQ(field_of([](auto& o) { o.min_radius = 0; }), "min_radius");
  EXPECT_EQ(field_of([](auto& o) { o.max_radius = 2; }), "max_radius");
  EXPECT_EQ(field_of([](auto& o) { o.noise = -1; }), "noise");
}

}  // namespace
}  // namespace lockstep::data
