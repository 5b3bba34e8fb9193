// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/csv.h"

#include <gmock/gmock.h>

#include "runtime/data/formats/csv_reader.h"
#include "runtime/data/make_dataset.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CsvTest : public testing::Test {
 protected:
  std::vector<std::vector<std::string>> lines_of(std::string_view text, char delimiter = ',') const {
    CsvReader reader(folder_.write_text("t.csv", text), delimiter);
    std::vector<std::vector<std::string>> lines;
    for (std::vector<std::string> cells; reader.next(cells);) lines.push_back(cells);
    return lines;
  }
  CsvOptions of(std::string_view text) const { return {.files = {folder_.write_text("t.csv", text)}}; }
  static std::string error(const CsvOptions& options) {
    return error_of([&] { CsvDataset set(options); });
  }
  std::string error(std::string_view text) const { return error(of(text)); }

  TemporaryFolder folder_;
};

TEST_F(CsvTest, CellsAreThoseOfRfc4180) {
  using Line = std::vector<std::string>;
  EXPECT_THAT(lines_of("a,b\r\nc,d"), ElementsAre(Line{"a", "b"}, Line{"c", "d"}));
  EXPECT_THAT(lines_of("\"a,b\",\"c \"\"d\"\"\"\n\"two\nlines\",\"\"\n"),
              ElementsAre(Line{"a,b", "c \"d\""}, Line{"two\nlines", ""}));
  EXPECT_THAT(lines_of(",\n\n,,x\n"), ElementsAre(Line{"", ""}, Line{"", "", "x"}));
  EXPECT_THAT(lines_of("\xef\xbb\xbf"
                       "a;b",
                       ';'),
              ElementsAre(Line{"a", "b"}));
  EXPECT_THAT(lines_of(""), IsEmpty());
}

TEST_F(CsvTest, LongFilesAndGzippedOnesAreReadPieceByPiece) {
  std::string text = "x,y\n";
  for (int i = 0; i < 30'000; ++i) text += std::to_string(i) + "," + std::to_string(i % 3) + "\n";
  const CsvDataset plain(of(text));
  EXPECT_EQ(plain.size(), 30'000);
  EXPECT_EQ(drawn(plain, {.index = 29'999}), (Drawn{.values = {29'999}, .labels = {2}}));
  const CsvDataset packed({.files = {folder_.write("t.csv.gz", gzipped(Bytes(text.begin(), text.end())))}});
  EXPECT_EQ(packed.size(), 30'000);
}

// A gzipped table of some MB may hold thousands of times as much.
TEST_F(CsvTest, MoreRowsThanMemoryHoldsAreRefused) {
  std::string text = "x,w,y\n";
  for (int i = 0; i < 1000; ++i) text += "0,1,0\n";
  CsvOptions options{.files = {folder_.write("t.csv.gz", gzipped(Bytes(text.begin(), text.end())))}, .weight = "w"};
  constexpr std::uint64_t kRow = 4 + 4 + 8 + 12;
  EXPECT_THAT(error_of([&] { CsvDataset(options, MemoryBudget(999 * kRow)); }), HasSubstr("t.csv.gz takes"));
  EXPECT_EQ(CsvDataset(options, MemoryBudget(1000 * kRow)).size(), 1000);
  options.target_kind = TargetKind::kNumbers;
  EXPECT_EQ(CsvDataset(options, MemoryBudget(1000 * 20)).size(), 1000);
}

TEST_F(CsvTest, NamesAreClassesInTheirOrder) {
  CsvOptions options = of("length,kind,width\n1.5,setosa,-2e1\n+3 ,iris, 4\n5,setosa,6\n");
  options.target = "kind";
  const CsvDataset set(options);
  EXPECT_EQ(set.sample_shape(), (Shape{2}));
  EXPECT_EQ(set.classes(), 2);
  EXPECT_THAT(set.class_names(), ElementsAre("iris", "setosa"));
  EXPECT_EQ(drawn(set, {.index = 0}), (Drawn{.values = {1.5, -20}, .labels = {1}}));
  EXPECT_EQ(drawn(set, {.index = 1}), (Drawn{.values = {3, 4}, .labels = {0}}));
  EXPECT_THAT(set.describe().labels, ElementsAre(1, 0, 1));
}

TEST_F(CsvTest, NumbersAreClassesFromZeroOn) {
  const CsvDataset set(of("x,y\n1,10\n2,2\n"));
  EXPECT_EQ(set.classes(), 11);
  EXPECT_THAT(set.class_names(), IsEmpty());
  EXPECT_THAT(drawn(set, {.index = 0}).labels, ElementsAre(10));
  CsvOptions few = of("x,y\n1,10\n2,2\n");
  few.classes = 3;
  EXPECT_THAT(error(few), HasSubstr("t.csv:2: column \"y\": \"10\" is none of the 3 classes, which are numbers"));
}

TEST_F(CsvTest, ColumnsAreChosenByNameOrNumber) {
  CsvOptions options = of("a,b,c,d\n1,2,3,4\n5,6,7,8\n");
  options.target_kind = TargetKind::kNumbers;
  options.target = "b";
  options.features = {"d", "0"};
  const CsvDataset set(options);
  EXPECT_EQ(drawn(set, {.index = 1}), (Drawn{.values = {8, 5}, .target = {6}}));
  CsvOptions bare = of("1,2,3\n4,5,6\n");
  bare.header = false;
  bare.target_kind = TargetKind::kNumbers;
  EXPECT_EQ(drawn(CsvDataset(bare), {.index = 0}), (Drawn{.values = {1, 2}, .target = {3}}));
  bare.target = "0";
  EXPECT_EQ(drawn(CsvDataset(bare), {.index = 1}), (Drawn{.values = {5, 6}, .target = {4}}));
}

TEST_F(CsvTest, SeveralFilesAreOneTable) {
  const std::string a = folder_.write_text("a.csv", "x,y\n1,0\n");
  const std::string b = folder_.write_text("b.csv", "x,y\n2,1\n");
  const CsvDataset set({.files = {a, b}});
  EXPECT_EQ(set.size(), 2);
  const std::string other = folder_.write_text("other.csv", "x,z\n2,1\n");
  EXPECT_THAT(error(CsvOptions{.files = {a, other}}), HasSubstr("other.csv:1: the columns differ from those of"));
}

TEST_F(CsvTest, EvaluationHasTheClassesOfTheTraining) {
  const std::string train = folder_.write_text("train.csv", "x,y\n1,cat\n2,dog\n3,bee\n");
  const std::string eval = folder_.write_text("eval.csv", "x,y\n1,dog\n");
  const DataOptions options{.train = CsvOptions{.files = {train}}, .eval = CsvOptions{.files = {eval}}};
  const DatasetPtr set = make_dataset(options, Split::kEval);
  EXPECT_EQ(set->classes(), 3);
  EXPECT_THAT(drawn(*set, {}).labels, ElementsAre(2));
  folder_.write_text("eval.csv", "x,y\n1,dog\n2,cow\n");
  EXPECT_THAT(error_of([&] { make_dataset(options, Split::kEval); }),
              HasSubstr("eval.csv:3: column \"y\": \"cow\" is none of the 3 classes of the training data"));
}

TEST_F(CsvTest, EvaluationHasTheColumnsOfTheTrainingByName) {
  const std::string train = folder_.write_text("train.csv", "kind,length,width\n0,1,2\n1,3,4\n");
  const std::string eval = folder_.write_text("eval.csv", "width,kind,length,id\n4,1,3,x\n");
  for (const TargetKind kind : {TargetKind::kClasses, TargetKind::kNumbers}) {
    const DataOptions both{.train = CsvOptions{.files = {train}, .target = "kind", .target_kind = kind},
                           .eval = CsvOptions{.files = {eval}, .target_kind = kind}};
    EXPECT_THAT(drawn(*make_dataset(both, Split::kEval), {}).values, ElementsAre(3, 4));
  }
}

TEST_F(CsvTest, ABadCellNamesFileLineAndColumn) {
  EXPECT_THAT(error("x,y\n1,0\nabc,1\n"), HasSubstr("t.csv:3: column \"x\": expected a number, found \"abc\""));
  EXPECT_THAT(error("x,y\n,1\n"), HasSubstr("t.csv:2: column \"x\": expected a number, found \"\""));
  EXPECT_THAT(error("x,y\nnan,1\n"), HasSubstr("expected a number, found \"nan\""));
  EXPECT_THAT(error("x,y\n1e99,1\n"), HasSubstr("expected a number, found \"1e99\""));
  EXPECT_THAT(error("x,y\n1 2,1\n"), HasSubstr("expected a number, found \"1 2\""));
  EXPECT_THAT(error("x,y\n1,\n"), HasSubstr("t.csv:2: column \"y\": expected a class, found an empty cell"));
  EXPECT_THAT(error("x,y\n\"1\n\",1\n2,0,5\n"), HasSubstr("t.csv:2: column \"x\""));
  EXPECT_THAT(error("x,y\n1,\"a\nb\"\n2,0,5\n"), HasSubstr("t.csv:4: expected 2 cells, found 3"));
  EXPECT_THAT(error("x,y\n1,\"a\n"), HasSubstr("t.csv:2: a quote that is never closed"));
  EXPECT_THAT(error("x,y\n1,\"a\"b\n"), HasSubstr("text behind the closing quote of a cell"));
  EXPECT_THAT(error("x,y\n1,a\"b\n"), HasSubstr("a quote in a cell that does not begin with one"));
  EXPECT_THAT(error("x,y\r1,2\r"), HasSubstr("a carriage return without a line feed"));
  EXPECT_THAT(error("x,y\n"), HasSubstr("t.csv: holds no samples"));
  EXPECT_THAT(error(""), HasSubstr("t.csv: holds no samples"));
  EXPECT_THAT(error("x\n1\n"), HasSubstr("no column is left beside the target"));
  EXPECT_THAT(error("x,y\n" + std::string(100'000, '1') + ",1\n"), HasSubstr("a cell of more than 65536 bytes"));
  std::string line;
  for (int i = 0; i < 300; ++i) line += std::string(60'000, '1') + ",";
  EXPECT_THAT(error("x,y\n" + line), HasSubstr("a line of more than 16777216 bytes"));
  CsvOptions unknown = of("x,y\n1,0\n");
  unknown.target = "z";
  EXPECT_THAT(error(unknown), HasSubstr("t.csv:1: no column \"z\": there are x, y"));
  unknown.target = "2";
  EXPECT_THAT(error(unknown), HasSubstr("no column \"2\""));
  CsvOptions twice = of("x,x,y\n1,2,0\n");
  twice.features = {"x"};
  EXPECT_THAT(error(twice), HasSubstr("two columns are named \"x\""));
  CsvOptions both = of("a,b,y\n1,2,0\n");
  both.features = {"a", "b", "0"};
  EXPECT_THAT(error(both), HasSubstr("t.csv:1: column \"a\" is named twice among the features"));
}

TEST(CsvOptionsTest, WithoutAMeaningAreRefused) {
  const auto field = [](CsvOptions options) {
    options.files = {"t.csv"};
    const FieldProblems problems = problems_of(options);
    return problems.empty() ? "" : problems[0].field;
  };
  EXPECT_EQ(field({}), "");
  EXPECT_EQ(field({.target = "a", .features = {"b", "a"}}), "features[1]");
  EXPECT_EQ(field({.features = {"b", "b"}}), "features[1]");
  EXPECT_EQ(field({.delimiter = ""}), "delimiter");
  EXPECT_EQ(field({.delimiter = "."}), "delimiter");
  EXPECT_EQ(field({.delimiter = "\""}), "delimiter");
  EXPECT_EQ(field({.delimiter = "\t"}), "");
  EXPECT_EQ(field({.target_kind = TargetKind::kNumbers, .classes = 2}), "classes");
  EXPECT_EQ(field({.one_hot_up_to = 1025}), "one_hot_up_to");
  EXPECT_EQ(field({.one_hot_up_to = -1}), "one_hot_up_to");
}

TEST_F(CsvTest, EvaluationHasTheWeightsOfTheTrainingWhereItHasTheirColumn) {
  const std::string train = folder_.write_text("train.csv", "x,w,y\n1,0.5,0\n2,1,1\n");
  const std::string eval = folder_.write_text("eval.csv", "w,x,y\n0.25,3,1\n");
  const DataOptions both{.train = CsvOptions{.files = {train}, .weight = "w"}, .eval = CsvOptions{.files = {eval}}};
  EXPECT_EQ(drawn(*make_dataset(both, Split::kEval), {}), (Drawn{.values = {3}, .labels = {1}, .weight = {0.25f}}));
  folder_.write_text("eval.csv", "x,y\n3,1\n");
  EXPECT_FALSE(make_dataset(both, Split::kEval)->weighted());
}

TEST_F(CsvTest, AColumnOfWeightsIsNoFeature) {
  CsvOptions options = of("a,w,b,label\n1,0.5,2,0\n3,0,4,1\n");
  options.weight = "w";
  const CsvDataset dataset(options);
  EXPECT_TRUE(dataset.weighted());
  EXPECT_EQ(dataset.sample_shape(), (Shape{2}));
  EXPECT_EQ(drawn(dataset, {.index = 0}), (Drawn{.values = {1, 2}, .labels = {0}, .weight = {0.5f}}));
  EXPECT_EQ(drawn(dataset, {.index = 1}), (Drawn{.values = {3, 4}, .labels = {1}, .weight = {0}}));
  options = of("a,w,label\n1,-2,0\n");
  options.weight = "w";
  EXPECT_THAT(error(options), HasSubstr("t.csv:2: column \"w\": expected a weight >= 0, found \"-2\""));
  options.weight = "none";
  EXPECT_THAT(error(options), HasSubstr("no column \"none\""));
  options.weight = "label";
  EXPECT_THAT(error(options), HasSubstr("the target is the weight"));
  options.weight = "a";
  options.features = {"0", "w"};
  EXPECT_THAT(error(options), HasSubstr("the weight is among the features"));
}

}  // namespace
}  // namespace lockstep::data
