// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/svmlight.h"

#include <gmock/gmock.h>

#include "runtime/data/data_digest.h"
#include "runtime/data/make_dataset.h"
#include "runtime/init/find_data.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SvmlightTest : public testing::Test {
 protected:
  SvmlightOptions of(std::string_view text, const std::string& name = "t.svm") const {
    return {.files = {folder_.write_text(name, text)}};
  }
  SvmlightOptions numbers(std::string_view text) const {
    SvmlightOptions options = of(text);
    options.target_kind = TargetKind::kNumbers;
    return options;
  }
  static std::string error(const SvmlightOptions& options) {
    return error_of([&] { SvmlightDataset set(options); });
  }
  std::string error(std::string_view text) const { return error(of(text)); }

  TemporaryFolder folder_;
};

// sklearn.datasets.load_svmlight_file gives these values for this file.
constexpr std::string_view kAwkward =
    "# a comment before the first sample\r\n"
    "+1.5 2:-2e-1 \t4:+3 # indices 1 and 3 are 0\r\n"
    "\r\n"
    "-7  \n"
    "   \t  # nothing but a comment\n"
    "1e2 1:0 3:.25 4:1e-3#close\n"
    "0 5:-0.5";

TEST_F(SvmlightTest, AnAwkwardFileHasTheValuesThatSklearnReads) {
  const SvmlightDataset set(numbers(kAwkward));
  EXPECT_EQ(set.size(), 4);
  EXPECT_EQ(set.sample_shape(), (Shape{5}));
  EXPECT_EQ(set.classes(), 0);
  EXPECT_EQ(drawn(set, {.index = 0}), (Drawn{.values = {0, -0.2f, 0, 3, 0}, .target = {1.5}}));
  EXPECT_EQ(drawn(set, {.index = 1}), (Drawn{.values = {0, 0, 0, 0, 0}, .target = {-7}}));
  EXPECT_EQ(drawn(set, {.index = 2}), (Drawn{.values = {0, 0, 0.25, 1e-3f, 0}, .target = {100}}));
  EXPECT_EQ(drawn(set, {.index = 3}), (Drawn{.values = {0, 0, 0, 0, -0.5}, .target = {0}}));
}

TEST_F(SvmlightTest, AByteOrderMarkIsPassedOver) {
  EXPECT_EQ(drawn(SvmlightDataset(of("\xef\xbb\xbf"
                                     "1 1:4\n")),
                  {.index = 0}),
            (Drawn{.values = {4}, .labels = {1}}));
}

TEST_F(SvmlightTest, GzippedAndLongFilesAndSeveralOnesAreRead) {
  std::string text;
  for (int i = 0; i < 30'000; ++i) text += std::to_string(i % 3) + " 1:" + std::to_string(i) + "\n";
  const std::string packed = folder_.write("t.svm.gz", gzipped(Bytes(text.begin(), text.end())));
  const SvmlightDataset set({.files = {packed, folder_.write_text("u.svm", "2 2:5\n")}});
  EXPECT_EQ(set.size(), 30'001);
  EXPECT_EQ(drawn(set, {.index = 29'999}), (Drawn{.values = {29'999, 0}, .labels = {2}}));
  EXPECT_EQ(drawn(set, {.index = 30'000}), (Drawn{.values = {0, 5}, .labels = {2}}));
}

TEST_F(SvmlightTest, TargetsAreClassesByNumberOrByText) {
  const SvmlightDataset numbered(of("2 1:1\n0.0 1:1\n+1 1:1\n"));
  EXPECT_EQ(numbered.classes(), 3);
  EXPECT_THAT(numbered.class_names(), IsEmpty());
  EXPECT_THAT(numbered.describe().labels, ElementsAre(2, 0, 1));
  const SvmlightDataset named(of("+1 1:1\n-1 1:1\n1 1:1\n"));
  EXPECT_EQ(named.classes(), 2);
  EXPECT_THAT(named.class_names(), ElementsAre("-1", "1"));
  EXPECT_THAT(named.describe().labels, ElementsAre(1, 0, 1));
}

TEST_F(SvmlightTest, IndicesBeginAt1UnlessTheOptionsSay0) {
  SvmlightOptions options = of("1 0:4 2:5\n");
  EXPECT_THAT(error(options), HasSubstr("t.svm:1: index 0, and indices begin at 1"));
  options.zero_based = true;
  EXPECT_EQ(drawn(SvmlightDataset(options), {.index = 0}), (Drawn{.values = {4, 0, 5}, .labels = {1}}));
}

TEST_F(SvmlightTest, FeaturesMayBeMoreThanTheHighestIndexAndNotFewer) {
  SvmlightOptions options = of("1 1:1\n0 2:1\n");
  options.features = 4;
  EXPECT_EQ(SvmlightDataset(options).sample_shape(), (Shape{4}));
  options.features = 1;
  EXPECT_THAT(error(options), HasSubstr("t.svm:2: index 2 is beyond the 1 features"));
}

TEST_F(SvmlightTest, EvaluationDataHaveTheFeaturesAndClassesOfTheTrainingData) {
  const DataOptions data{.train = of("1 1:1\n-1 6:1\n"), .eval = of("1 2:3\n", "e.svm")};
  const DatasetPtr eval = make_dataset(data, Split::kEval);
  EXPECT_EQ(eval->sample_shape(), (Shape{6}));
  EXPECT_EQ(eval->classes(), 2);
  EXPECT_EQ(drawn(*eval, {.index = 0}), (Drawn{.values = {0, 3, 0, 0, 0, 0}, .labels = {1}}));
  EXPECT_THAT(class_names(data.train), ElementsAre("-1", "1"));
  const DataOptions other{.train = of("1 1:1\n-1 6:1\n"), .eval = of("2 2:3\n", "e.svm")};
  EXPECT_THAT(error_of([&] { make_dataset(other, Split::kEval); }),
              HasSubstr("e.svm:1: \"2\" is none of the 2 classes"));
}

TEST_F(SvmlightTest, DamageIsNamedWithFileLineAndWhatWasFound) {
  EXPECT_THAT(error("1 1:1\n\nspam 1:2\n"), HasSubstr("t.svm:3: expected a number as the target, found \"spam\""));
  EXPECT_THAT(error("1:2\n"), HasSubstr("t.svm:1: expected a number as the target before INDEX:VALUE"));
  EXPECT_THAT(error("1,2 1:1\n"), HasSubstr("t.svm:1: \"1,2\" is several targets"));
  EXPECT_THAT(error("1 qid:3 1:1\n"), HasSubstr("t.svm:1: \"qid:3\" makes it a ranking"));
  for (const std::string word :
       {"3", "x:1", "-1:2", "1.5:2", ":2", "1:", "1:x", "1:nan", "1:1e99", "1:2:3", "99999999999999999999:1"}) {
    EXPECT_THAT(error("0 " + word + "\n"), HasSubstr("t.svm:1: expected INDEX:VALUE, found \"" + word + "\"")) << word;
  }
  EXPECT_THAT(error("1 2:1 2:1\n"), HasSubstr("t.svm:1: index 2 comes behind index 2"));
  EXPECT_THAT(error("1 3:1 2:1\n"), HasSubstr("t.svm:1: index 2 comes behind index 3"));
  EXPECT_THAT(error("1 16777216:1\n"), HasSubstr("t.svm:1: index 16777216: 16777215 is the most"));
  EXPECT_THAT(error("# nothing\n\n"), HasSubstr("t.svm: holds no samples"));
  EXPECT_THAT(error("1\n0\n"), HasSubstr("t.svm: no sample has a feature"));
  EXPECT_THAT(error({.files = {folder_.path("none.svm")}}), HasSubstr("none.svm"));
}

TEST_F(SvmlightTest, MoreValuesThanMemoryHoldsAreRefused) {
  const SvmlightOptions options = of("1 1000000:1\n0 1:1\n");
  EXPECT_THAT(error_of([&] { SvmlightDataset(options, MemoryBudget(7'900'000)); }), HasSubstr("t.svm takes"));
  EXPECT_EQ(SvmlightDataset(options, MemoryBudget(8'100'000)).size(), 2);
}

TEST_F(SvmlightTest, OptionsWithoutAMeaningAreNamed) {
  SvmlightOptions options = of("1 1:1\n");
  options.features = -1;
  options.classes = 2;
  options.target_kind = TargetKind::kNumbers;
  std::vector<std::string> fields;
  for (const auto& problem : problems_of(options)) fields.push_back(problem.field);
  EXPECT_THAT(fields, ElementsAre("features", "classes"));
}

TEST_F(SvmlightTest, TheDigestFollowsValuesAndTargets) {
  const auto digest = [&](std::string_view text) { return digest_of("d", SvmlightDataset(of(text))); };
  const DataDigest one = digest("1 1:1\n0 2:1\n"), same = digest("1 1:1 # the same\n0 1:0 2:1\n");
  EXPECT_EQ(one.content, same.content);
  EXPECT_EQ(one.labels, same.labels);
  EXPECT_NE(digest("1 1:1\n0 2:2\n").content, one.content);
  EXPECT_NE(digest("0 1:1\n1 2:1\n").labels, one.labels);
}

TEST_F(SvmlightTest, InitFindsThemByTheirEnding) {
  const std::string train = folder_.write_text("a_train.svm", "1 1:1\n-1 0:1\n"),
                    eval = folder_.write_text("a_val.svm.gz", "1 1:1\n");
  const auto found = [&] { return init::find_data({folder_.path("")}, {}).options; };
  const SvmlightOptions expected{.files = {train}, .zero_based = true};
  EXPECT_EQ(found().train, DatasetOptions(expected));
  SvmlightOptions expected_eval = expected;
  expected_eval.files = {eval};
  EXPECT_EQ(found().eval, std::optional<DatasetOptions>(expected_eval));
  folder_.write_text("a_train.svm", "1.5 1:1\n-1 1:1\n");
  EXPECT_EQ(std::get<SvmlightOptions>(found().train).target_kind, TargetKind::kNumbers);
  EXPECT_FALSE(std::get<SvmlightOptions>(found().train).zero_based);
}

}  // namespace
}  // namespace lockstep::data
