// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "runtime/base/error.h"
#include "runtime/data/cifar.h"
#include "runtime/data/idx.h"
#include "runtime/data/make_dataset.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DescriptionTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(DescriptionTest, OfIdxFilesIsThatOfTheOpenDataSet) {
  for (const bool packed : {false, true}) {
    const auto content = [&](const Bytes& bytes) { return packed ? gzipped(bytes) : bytes; };
    const std::string images = folder_.write("images", content(idx_bytes({6, 3, 2})));
    const std::string labels = folder_.write("labels", content(idx_bytes({6}, 4)));
    const Description description = IdxKind::describe({images, labels});
    const DatasetPtr open = IdxKind::open({images, labels});
    EXPECT_EQ(description.samples, open->size());
    EXPECT_EQ(description.sample_shape, open->sample_shape());
    EXPECT_EQ(description.classes, open->classes());
    EXPECT_THAT(description.labels, ElementsAre(0, 1, 2, 3, 0, 1));
  }
}

// Whatever is wrong with a pair of files, but for damage within the pixels, is said in the same words.
TEST_F(DescriptionTest, OfIdxFilesFindsWhatOpeningThemFinds) {
  const Bytes whole = idx_bytes({6, 3, 2});
  const std::vector<Bytes> wrong_images{idx_bytes({5, 3, 2}),
                                        idx_bytes({6}),
                                        idx_bytes({6, 0, 2}),
                                        Bytes(whole.begin(), whole.begin() + 9),
                                        Bytes(whole.begin(), whole.end() - 1),
                                        [&] {
                                          Bytes longer = whole;
                                          longer.push_back(0);
                                          return longer;
                                        }(),
                                        {0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
                                        {}};
  const std::string labels = folder_.write("labels", idx_bytes({6}, 4));
  for (std::size_t i = 0; i < wrong_images.size(); ++i) {
    for (const bool packed : {false, true}) {
      const std::string images = folder_.write("images", packed ? gzipped(wrong_images[i]) : wrong_images[i]);
      const std::string opening = error_of([&] { IdxKind::open({images, labels}); });
      EXPECT_NE(opening, "") << i;
      EXPECT_EQ(error_of([&] { IdxKind::describe({images, labels}); }), opening) << i;
    }
  }
  Bytes cut = gzipped(whole);
  cut.resize(cut.size() - 5);
  const std::string images = folder_.write("cut.gz", cut);
  EXPECT_EQ(error_of([&] { IdxKind::describe({images, labels}); }), error_of([&] { IdxKind::open({images, labels}); }));
  const std::string sound = folder_.write("images", whole);
  EXPECT_EQ(error_of([&] {
              IdxKind::describe({sound, labels, 3});
            }),
            error_of([&] {
              IdxKind::open({sound, labels, 3});
            }));
}

TEST_F(DescriptionTest, OfCifarFilesIsThatOfTheOpenDataSet) {
  Bytes records(3 * 3074);
  for (std::size_t i = 0; i < 3; ++i) records[i * 3074 + 1] = static_cast<std::uint8_t>(7 * i);
  const std::string one = folder_.write("one", records);
  const Description description = CifarKind::describe({{one, one}, CifarLabels::kCifar100Fine});
  const DatasetPtr open = CifarKind::open({{one, one}, CifarLabels::kCifar100Fine});
  EXPECT_EQ(description.samples, open->size());
  EXPECT_EQ(description.sample_shape, open->sample_shape());
  EXPECT_EQ(description.classes, open->classes());
  EXPECT_THAT(description.labels, ElementsAre(0, 7, 14, 0, 7, 14));
  records[1] = 200;
  const std::string wrong = folder_.write("wrong", records);
  const std::string part = folder_.write("part", Bytes(3000));
  for (const std::string& file : {wrong, part}) {
    const std::string opening = error_of([&] { CifarKind::open({{file}, CifarLabels::kCifar100Fine}); });
    EXPECT_NE(opening, "");
    EXPECT_EQ(error_of([&] { CifarKind::describe({{file}, CifarLabels::kCifar100Fine}); }), opening);
  }
}

TEST(Description, OfGeneratedDataMakesNoTables) {
  const SyntheticOptions generated{.samples = 5, .shape = {1 << 30}, .classes = 1 << 20};  // patterns of 2^50 floats
  const Description description = describe({.train = generated}, Split::kTrain);
  EXPECT_EQ(description.samples, 5);
  EXPECT_EQ(description.sample_shape, (Shape{1 << 30}));
  EXPECT_EQ(description.classes, 1 << 20);
}

Description with_labels(std::vector<std::int64_t> labels, std::int64_t classes) {
  Description description;
  description.classes = classes;
  description.labels = std::move(labels);
  return description;
}

TEST(StrangeLabels, AreClassesWithoutSamplesAndLabelsFarAboveTheOthers) {
  EXPECT_THAT(strange_labels(with_labels({0, 1, 2, 1}, 3), true), IsEmpty());
  EXPECT_THAT(strange_labels(with_labels({}, 3), true), IsEmpty()) << "generated data have none to look at";
  EXPECT_THAT(strange_labels(with_labels({0, 2, 2}, 3), true), ElementsAre("class 1 of 3 has no sample"));
  EXPECT_THAT(strange_labels(with_labels({0, 3}, 5), false), ElementsAre("classes 1, 2, 4 of 5 have no sample"));
  EXPECT_THAT(strange_labels(with_labels({0, 1, 250, 1}, 251), true),
              ElementsAre(HasSubstr("label 250 (1 sample, the first at index 2) is far above the others, which end at "
                                    "1, and makes 251 classes")));
  // Whoever gives the number of classes means it.
  EXPECT_THAT(strange_labels(with_labels({0, 1, 250}, 251), false),
              ElementsAre("classes 2, 3, 4, 5, 6, 7, 8, 9 and 240 more of 251 have no sample"));
}

}  // namespace
}  // namespace lockstep::data
