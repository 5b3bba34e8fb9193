// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/target_summary.h"

#include <gmock/gmock.h>

#include "runtime/data/csv.h"
#include "runtime/data/make_dataset.h"
#include "runtime/data/normalize_target.h"
#include "runtime/data/synthetic.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TargetSummaryTest : public testing::Test {
 protected:
  CsvOptions table(TargetKind kind) const {
    CsvOptions options{.files = {folder_.write_text("t.csv", "x,y\n1,2\n2,0\n3,2\n4,8\n")}};
    options.target_kind = kind;
    return options;
  }

  TemporaryFolder folder_;
};

TEST_F(TargetSummaryTest, HasTheMostFrequentClassOrTheMean) {
  EXPECT_EQ(CsvDataset(table(TargetKind::kClasses)).target_summary(), (TargetSummary{.common_class = 2}));
  EXPECT_EQ(CsvDataset(table(TargetKind::kNumbers)).target_summary(), (TargetSummary{.mean = {3}}));
  const std::vector<std::int64_t> tied{5, 1, 1, 5};
  EXPECT_EQ(most_common(tied), 1);
  EXPECT_FALSE(most_common({}));
}

TEST_F(TargetSummaryTest, EvaluationDataHaveThatOfTheTrainingData) {
  const Description train = describe(CsvDataset(table(TargetKind::kClasses)));
  Description eval = train;
  eval.target_summary.common_class = 0;
  EXPECT_EQ(as_trained(eval, train).target_summary.common_class, 2);
  // Where only the labels are known.
  Description labels = train;
  labels.target_summary = {};
  labels.labels = {1, 1, 0};
  EXPECT_EQ(as_trained(eval, labels).target_summary.common_class, 1);
}

TEST_F(TargetSummaryTest, NormalisedTargetsKeepTheMeanOfTheFilesAndSayTheirScale) {
  DataOptions options{.train = table(TargetKind::kNumbers)};
  options.normalize_target = {.mean = {3}, .std = {2}};
  const DatasetPtr set = make_dataset(options, Split::kTrain);
  EXPECT_THAT(drawn(*set, {.index = 3}).target, ElementsAre(2.5f));
  EXPECT_THAT(drawn(*set, {.index = 3}).values, ElementsAre(4));
  const TargetSummary expected{.mean = {3}, .scale = {.mean = {3}, .std = {2}}};
  EXPECT_EQ(set->target_summary(), expected);
  EXPECT_EQ(describe(options, Split::kTrain).target_summary, expected);
  std::vector<float> answer{2.5f};
  expected.scale.undo(answer);
  EXPECT_THAT(answer, ElementsAre(8));
}

TEST_F(TargetSummaryTest, AScaleIsOfEachElementOrOfAll) {
  const TargetScale each{.mean = {1, 2}, .std = {10, 20}};
  EXPECT_EQ(each.undone(1, 0), 11);
  EXPECT_EQ(each.undone(1, 1), 22);
  EXPECT_EQ(each.undone(1, 2), 11);  // the first channel of the next position
  const TargetScale all{.mean = {}, .std = {10}};
  EXPECT_EQ(all.undone(1, 5), 10);
  const auto refusal = [](const NormalizeOptions& options, std::int64_t classes) -> std::string {
    try {
      const auto synthetic =
          SyntheticKind::open({.samples = 2, .shape = {3}, .classes = classes, .target_size = classes > 0 ? 0 : 2});
      NormalizeTarget(synthetic, options);
    } catch (const FieldError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_THAT(refusal({.mean = {1, 2, 3}}, 0), HasSubstr("data.normalize_target.mean: has 3 values, but targets of"));
  EXPECT_THAT(refusal({.std = {0}}, 0), HasSubstr("data.normalize_target.std[0]"));
  EXPECT_THAT(refusal({.std = {2}}, 4), HasSubstr("data.normalize_target: needs targets that are numbers"));
}

TEST_F(TargetSummaryTest, ComesBackFromItsText) {
  for (const TargetSummary& summary : {TargetSummary{}, TargetSummary{.common_class = 3},
                                       TargetSummary{.mean = {0.1, 2e9}, .scale = {.mean = {0.1f}, .std = {3, 4}}}}) {
    EXPECT_EQ(target_summary_in(json_text(summary), "run"), summary);
  }
  const auto refusal = [](const std::string& text) { return error_of([&] { target_summary_in(text, "run"); }); };
  EXPECT_THAT(refusal("["), HasSubstr("run: the summary of targets is damaged: it has no \"scale\""));
  EXPECT_THAT(refusal(R"({"mean": 3, "scale": {"mean": [], "std": []}})"), HasSubstr("\"mean\" must be a list"));
  EXPECT_THAT(refusal(R"({"mean": [], "scale": {"mean": [], "std": [0]}})"), HasSubstr("\"std\" must be > 0"));
  EXPECT_THAT(refusal(R"({"mean": [], "scale": {"mean": [], "std": []}, "common_class": -1})"),
              HasSubstr("\"common_class\" must be"));
}

}  // namespace
}  // namespace lockstep::data
