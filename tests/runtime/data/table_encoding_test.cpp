// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/table_encoding.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/data/csv.h"
#include "runtime/data/data_digest.h"
#include "runtime/data/drawn_sample.h"
#include "runtime/data/make_dataset.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What the Error says that `use` throws.
std::string refusal_by(const std::function<void()>& use) {
  try {
    use();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

constexpr const char* kPeople =
    "age,town,name,code,height,sex\n"
    "20,Ulm,a,10, 1.5 ,m\n"
    ",Bonn,b,20,1.75,f\n"
    "40,NA,c,10,nan,m\n"
    "30,Bonn,d,30,2,f\n";

class TableEncodingTest : public testing::Test {
 protected:
  CsvOptions people() const {
    CsvOptions options{.files = {folder_.write_text("people.csv", kPeople)}};
    options.features = {"age", "town", "code", "height"};
    options.blanks = BlankCells::kFill;
    options.words = WordCells::kOneHot;
    options.categories = {"code"};
    return options;
  }
  static std::vector<float> encoded(const TableEncoding& encoding, const std::vector<std::string>& cells) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < cells.size(); ++i) order.push_back(i);
    std::vector<float> row(static_cast<std::size_t>(encoding.width()), -7);
    encode(encoding, cells, order, row, {});
    return row;
  }

  TemporaryFolder folder_;
};

TEST_F(TableEncodingTest, BlanksAreFilledAndWordsAreANumberEach) {
  const CsvDataset set(people());
  const TableEncoding& encoding = set.encoding();
  // age, blank; Bonn, Ulm, blank; 10, 20, 30; height, blank
  ASSERT_EQ(set.sample_shape(), (Shape{10}));
  EXPECT_EQ(encoding.columns[0].fill, 30);
  EXPECT_EQ(encoding.columns[1].fill_word, "Bonn");
  EXPECT_THAT(encoding.columns[1].values, ElementsAre("Bonn", "Ulm"));
  EXPECT_THAT(encoding.columns[2].values, ElementsAre("10", "20", "30"));
  EXPECT_EQ(encoding.columns[3].fill, 1.75);
  EXPECT_THAT(drawn(set, {.index = 0}).values, ElementsAre(20, 0, 0, 1, 0, 1, 0, 0, 1.5, 0));
  EXPECT_THAT(drawn(set, {.index = 1}).values, ElementsAre(30, 1, 1, 0, 0, 0, 1, 0, 1.75, 0));
  EXPECT_THAT(drawn(set, {.index = 2}).values, ElementsAre(40, 0, 1, 0, 1, 1, 0, 0, 1.75, 1));
  EXPECT_EQ(encoding.target, "sex");
  EXPECT_THAT(encoding.class_names, ElementsAre("f", "m"));
}

TEST_F(TableEncodingTest, OfAnEvenNumberOfCellsTheMedianLiesBetweenAndTiedWordsGoByTheAlphabet) {
  CsvOptions options{.files = {folder_.write_text("t.csv", "x,w,y\n1,b,0\n10,a,1\n,b,0\n?,a,1\n")}};
  options.blanks = BlankCells::kFill;
  options.words = WordCells::kOneHot;
  const CsvDataset set(options);
  EXPECT_EQ(set.encoding().columns[0].fill, 5.5);
  EXPECT_FALSE(set.encoding().columns[1].says_blank);
  EXPECT_EQ(set.encoding().columns[1].fill_word, "a");
}

TEST_F(TableEncodingTest, NumbersAreStandardisedAfterBlanksAreFilled) {
  CsvOptions options{.files = {folder_.write_text("t.csv", "x,c,y\n1,7,0\n3,7,1\n,7,0\n8,7,1\n")}};
  options.blanks = BlankCells::kFill;
  options.standardize = true;
  const CsvDataset set(options);
  const TableColumn& x = set.encoding().columns[0];
  ASSERT_TRUE(x.scale);
  EXPECT_EQ(x.scale->mean, 3.75);  // of 1, 3, 3, 8
  EXPECT_DOUBLE_EQ(x.scale->std, std::sqrt(26.75 / 4));
  EXPECT_EQ(set.encoding().columns[1].scale->std, 1);
  EXPECT_THAT(drawn(set, {.index = 2}).values, ElementsAre(static_cast<float>(-0.75 / std::sqrt(26.75 / 4)), 1, 0));
}

// A float holds no two seconds of today apart.
TEST_F(TableEncodingTest, StandardisedNumbersKeepTheirDigits) {
  CsvOptions options{.files = {folder_.write_text("t.csv", "t,y\n1700000000,0\n1700000002,1\n")}};
  options.standardize = true;
  const CsvDataset set(options);
  EXPECT_THAT(drawn(set, {.index = 0}).values, ElementsAre(-1));
  EXPECT_THAT(drawn(set, {.index = 1}).values, ElementsAre(1));
}

TEST_F(TableEncodingTest, WithoutTheOptionsACellIsANumberAsItStands) {
  CsvOptions options{.files = {folder_.write_text("t.csv", "x,y\n1.5,0\n,1\n")}};
  EXPECT_THAT(refusal_by([&] { CsvDataset set(options); }),
              HasSubstr("t.csv:3: column \"x\": expected a number, found \"\""));
  options.words = WordCells::kOneHot;
  EXPECT_THAT(refusal_by([&] { CsvDataset set(options); }), HasSubstr("t.csv:3: column \"x\": expected a number"));
  options.categories = {"x"};
  EXPECT_THAT(refusal_by([&] { CsvDataset set(options); }),
              HasSubstr("t.csv:3: column \"x\": expected a word, found a blank cell"));
}

TEST_F(TableEncodingTest, ColumnsThatCannotBeLearnedAreNamed) {
  CsvOptions options{.files = {folder_.write_text("t.csv", "x,e,y\n1,,0\n2,NA,1\n")}};
  options.blanks = BlankCells::kFill;
  EXPECT_THAT(refusal_by([&] { CsvDataset set(options); }), HasSubstr("column \"e\": all its cells are blank"));
  std::string text = "w,y\n";
  for (int i = 0; i < 100'001; ++i) text += "word" + std::to_string(i) + ",0\n";
  options = {.files = {folder_.write_text("t.csv", text)}, .words = WordCells::kOneHot};
  EXPECT_THAT(refusal_by([&] { CsvDataset set(options); }),
              HasSubstr("t.csv:100002: column \"w\": holds more than 100000 different words"));
  options = {.files = {folder_.write_text("t.csv", "x,y\n1,0\n")}, .categories = {"z"}};
  EXPECT_THAT(refusal_by([&] { CsvDataset set(options); }), HasSubstr("no column \"z\""));
  options.categories = {"y"};
  EXPECT_THAT(refusal_by([&] { CsvDataset set(options); }), HasSubstr("column \"y\" of `categories` is none of the"));
}

TEST_F(TableEncodingTest, EvaluationDataAreEncodedAsTheTrainingDataAre) {
  DataOptions options{.train = people()};
  options.eval =
      CsvOptions{.files = {folder_.write_text("eval.csv", "sex,code,town,height,age\nf,10,?,2,\nm,99,Rom,,5\n")}};
  const DatasetPtr set = make_dataset(options, Split::kEval);
  EXPECT_THAT(drawn(*set, {.index = 0}).values, ElementsAre(30, 1, 1, 0, 1, 1, 0, 0, 2, 0));
  // Categories that the training data lack are none of theirs.
  EXPECT_THAT(drawn(*set, {.index = 1}).values, ElementsAre(5, 0, 0, 0, 0, 0, 0, 0, 1.75, 1));
  EXPECT_THAT(describe(options, Split::kEval).remarks,
              ElementsAre(HasSubstr("column \"town\": 1 of 2 cells hold categories that the training data lack"),
                          HasSubstr("column \"code\": 1 of 2 cells")));
  EXPECT_THAT(describe(options, Split::kTrain).remarks, IsEmpty());
  std::get<CsvOptions>(*options.eval).standardize = true;
  EXPECT_THAT(refusal_by([&] { make_dataset(options, Split::kEval); }),
              HasSubstr("data.eval.csv.standardize: must be that of data.train.csv"));
}

TEST_F(TableEncodingTest, EvaluationDataNeedNoTrainingFilesWhereTheEncodingIsKnown) {
  CsvOptions train = people();
  train.encoding = CsvDataset(train).encoding();
  train.files = {folder_.path("gone.csv")};
  const DataOptions options{
      .train = train,
      .eval = CsvOptions{.files = {folder_.write_text("eval.csv", "sex,code,town,height,age\nf,10,?,2,\n")}}};
  const DatasetPtr set = make_dataset(options, Split::kEval);
  EXPECT_EQ(drawn(*set, {}), (Drawn{.values = {30, 1, 1, 0, 1, 1, 0, 0, 2, 0}, .labels = {0}}));
  EXPECT_EQ(set->classes(), 2);
  EXPECT_THAT(class_names(options.train), ElementsAre("f", "m"));
}

TEST_F(TableEncodingTest, LinesOfOtherFilesHaveTheColumnsInAnyOrderAndNeedNoTarget) {
  const TableEncoding encoding = CsvDataset(people()).encoding();
  const std::vector<std::string> header{"id", "height", "code", "age", "town"};
  const std::vector<std::size_t> order = order_in(encoding, header);
  EXPECT_THAT(order, ElementsAre(3, 4, 2, 1));
  std::vector<float> row(10);
  const std::vector<std::string> cells{"x", "2.5", "20", "", "Ulm"};
  EXPECT_THAT(encode(encoding, cells, order, row, {}).unknown, IsEmpty());
  EXPECT_THAT(row, ElementsAre(30, 1, 0, 1, 0, 0, 1, 0, 2.5, 0));
  const std::vector<std::string> lacking{"age", "height"}, twice{"age", "town", "code", "height", "age"};
  EXPECT_THAT(refusal_by([&] { order_in(encoding, lacking); }),
              HasSubstr("lacks columns of the training data: \"town\", \"code\""));
  EXPECT_THAT(refusal_by([&] { order_in(encoding, twice); }), HasSubstr("several columns are named \"age\""));
}

TEST_F(TableEncodingTest, WithoutAHeaderColumnsAreKnownByTheirPositions) {
  CsvOptions options{.files = {folder_.write_text("t.csv", "5,red,1,2\n6,blue,0,3\n")}};
  options.header = false;
  options.target = "2";
  options.features = {"3", "1"};
  options.words = WordCells::kOneHot;
  const TableEncoding encoding = CsvDataset(options).encoding();
  const std::vector<std::string> line{"5", "red", "1", "2"}, bare{"red", "2"}, short_line{"red"};
  EXPECT_THAT(order_in(encoding, line), ElementsAre(3, 1));
  EXPECT_THAT(order_in(encoding, bare), ElementsAre(1, 0));
  EXPECT_THAT(refusal_by([&] { order_in(encoding, short_line); }),
              HasSubstr("a line has 1 cells; expected the 4 columns"));
}

TEST_F(TableEncodingTest, EvaluationDataHaveTheColumnsThatTheTrainingDataNameByNumber) {
  CsvOptions train{.files = {folder_.write_text("t.csv", ",x,x,y,z\nu,1,2,0,7\nv,3,4,1,9\n")}};
  train.target = "3";
  train.features = {"2", "0"};
  train.words = WordCells::kOneHot;
  const DataOptions options{.train = train,
                            .eval = CsvOptions{.files = {folder_.write_text("eval.csv", ",x,x,y,z\nv,8,6,1,0\n")}}};
  EXPECT_EQ(drawn(*make_dataset(options, Split::kEval), {}), (Drawn{.values = {6, 0, 1}, .labels = {1}}));
}

TEST_F(TableEncodingTest, ComesBackFromItsText) {
  CsvOptions options = people();
  options.standardize = true;
  TableEncoding encoding = CsvDataset(options).encoding();
  EXPECT_EQ(encoding_in(json_text(encoding), "run"), encoding);
  encoding.columns[1].name =
      "Stra\xdf"
      "e";  // Latin-1
  EXPECT_EQ(encoding_in(json_text(encoding), "run"), encoding);
  EXPECT_EQ(encoded(encoding, {"30", "Ulm", "10", "1.75"}),
            encoded(encoding_in(json_text(encoding), "run"), {"30", "Ulm", "10", "1.75"}));
}

TEST_F(TableEncodingTest, ADamagedTextIsRefusedWithTheFieldThatIsWrong) {
  const nlohmann::json sound = nlohmann::json::parse(json_text(CsvDataset(people()).encoding()));
  const auto refusal = [&](const char* place, const nlohmann::json& value) {
    nlohmann::json damaged = sound;
    damaged[nlohmann::json::json_pointer(place)] = value;
    return refusal_by([&] { encoding_in(damaged.dump(), "run/preparation"); });
  };
  EXPECT_THAT(refusal_by([] { encoding_in("{", "run"); }), HasSubstr("run: the encoding of a table is damaged: is no"));
  EXPECT_THAT(refusal("/version", 2),
              HasSubstr("run/preparation: the encoding of a table is damaged: its version is 2"));
  EXPECT_THAT(refusal("/delimiter", ""), HasSubstr("\"delimiter\" must be one character"));
  EXPECT_THAT(refusal("/file_columns", 3), HasSubstr("\"columns\" must be a list of columns, fewer than"));
  EXPECT_THAT(refusal("/columns", nlohmann::json::array()), HasSubstr("\"columns\" must be"));
  EXPECT_THAT(refusal("/columns/0/position", 6), HasSubstr("\"position\" must be a whole number from 0 to 5"));
  EXPECT_THAT(refusal("/columns/0/kind", "word"),
              HasSubstr("\"kind\" must be \"number\", \"category\" or \"embedded\""));
  EXPECT_THAT(refusal("/columns/0/fill", "x"), HasSubstr("\"fill\" must be a number"));
  EXPECT_THAT(refusal("/columns/1/fill", "Rom"), HasSubstr("\"fill\" must be one of the values"));
  EXPECT_THAT(refusal("/columns/1/values", {"Ulm", "Bonn"}), HasSubstr("\"values\" must be sorted"));
  EXPECT_THAT(refusal("/class_names", {"m"}), HasSubstr("\"class_names\" must be as many as \"classes\""));
  nlohmann::json lacking = sound;
  lacking.erase("columns");
  EXPECT_THAT(refusal_by([&] { encoding_in(lacking.dump(), "run"); }), HasSubstr("it has no \"columns\""));
}

constexpr const char* kStreets =
    "street,town,height,sex\n"
    "Am Tor,Ulm,1.5,m\n"
    " ,Bonn,1.75,f\n"
    "Weg,Ulm,,m\n"
    "Gasse,NA,2,f\n";

class EmbeddedColumnsTest : public testing::Test {
 protected:
  CsvOptions streets(std::int64_t one_hot_up_to) const {
    return {.files = {folder_.write_text("streets.csv", kStreets)},
            .blanks = BlankCells::kFill,
            .words = WordCells::kOneHot,
            .one_hot_up_to = one_hot_up_to};
  }
  static std::vector<std::int64_t> tokens_of(const Dataset& set, std::int64_t index) {
    DrawnSample drawn(set);
    set.get({.index = index}, drawn.sample());
    std::vector<std::int64_t> tokens;
    for (const DrawnSample::Input& input : drawn.more) tokens.push_back(input.tokens.at(0));
    return tokens;
  }

  TemporaryFolder folder_;
};

TEST_F(EmbeddedColumnsTest, AColumnOfMoreCategoriesIsATokenBesideTheNumbers) {
  const CsvDataset set(streets(2));
  EXPECT_EQ(set.sample_shape(), (Shape{5}));  // Bonn, Ulm, blank; height, blank
  EXPECT_THAT(set.more_inputs(), ElementsAre(InputSpec{{1}, 4}));
  EXPECT_EQ(set.encoding().columns[0].kind, TableColumn::Kind::kEmbedded);
  EXPECT_EQ(set.encoding().columns[1].kind, TableColumn::Kind::kCategory);
  EXPECT_THAT(tokens_of(set, 0), ElementsAre(1));  // Am Tor, Gasse, Weg
  EXPECT_THAT(tokens_of(set, 1), ElementsAre(0)) << "a blank cell is a category of its own";
  EXPECT_THAT(tokens_of(set, 2), ElementsAre(3));
  EXPECT_THAT(tokens_of(set, 3), ElementsAre(2));
  EXPECT_THAT(CsvDataset(streets(3)).more_inputs(), IsEmpty());
}

TEST_F(EmbeddedColumnsTest, AllColumnsOfATableMayBeEmbedded) {
  CsvOptions options = streets(0);
  options.features = {"town", "street"};
  const CsvDataset set(options);
  EXPECT_EQ(set.sample_shape(), (Shape{0}));
  EXPECT_THAT(set.more_inputs(), ElementsAre(InputSpec{{1}, 3}, InputSpec{{1}, 4}));
  EXPECT_THAT(tokens_of(set, 0), ElementsAre(2, 1));
}

TEST_F(EmbeddedColumnsTest, ACategoryThatTheTrainingDataLackIsTheUnknownToken) {
  DataOptions options{.train = streets(2)};
  options.eval =
      CsvOptions{.files = {folder_.write_text("eval.csv", "sex,street,town,height\nf,Allee,Ulm,1\nm,,Ulm,1\n")}};
  const DatasetPtr set = make_dataset(options, Split::kEval);
  EXPECT_THAT(tokens_of(*set, 0), ElementsAre(0));
  EXPECT_THAT(tokens_of(*set, 1), ElementsAre(0));
  EXPECT_THAT(describe(options, Split::kEval).remarks,
              ElementsAre(HasSubstr("column \"street\": 1 of 2 cells hold categories that the training data lack")));
  std::get<CsvOptions>(*options.eval).one_hot_up_to = 3;
  EXPECT_THAT(refusal_by([&] { make_dataset(options, Split::kEval); }),
              HasSubstr("data.eval.csv.one_hot_up_to: must be that of data.train.csv"));
}

TEST_F(EmbeddedColumnsTest, AnUnfilledBlankCellIsRefused) {
  CsvOptions options = streets(2);
  options.blanks = BlankCells::kRefuse;
  EXPECT_THAT(refusal_by([&] { CsvDataset set(options); }),
              HasSubstr("streets.csv:3: column \"street\": expected a word, found a blank cell"));
}

TEST_F(EmbeddedColumnsTest, TokensTellDataApart) {
  const CsvDataset one(streets(2));
  std::string text = kStreets;
  text.replace(text.find("Weg"), 3, "Am Tor");
  CsvOptions options = streets(2);
  options.encoding = one.encoding();
  options.files = {folder_.write_text("others.csv", text)};
  EXPECT_NE(digest_of("t", one).content, digest_of("t", CsvDataset(options)).content);
}

TEST_F(EmbeddedColumnsTest, ComeBackFromTheirText) {
  const TableEncoding encoding = CsvDataset(streets(2)).encoding();
  EXPECT_EQ(encoding_in(json_text(encoding), "run"), encoding);
  nlohmann::json damaged = nlohmann::json::parse(json_text(encoding));
  damaged["columns"][0]["says_blank"] = true;
  EXPECT_THAT(refusal_by([&] { encoding_in(damaged.dump(), "run"); }),
              HasSubstr("\"says_blank\" must be false of an embedded column"));
}

/// A table of the golden file with a target behind its columns.
std::string with_target(const std::string& table) {
  std::string text;
  for (const char c : table) text += c == '\n' ? (text.find('\n') == text.npos ? ",y\n" : ",1.5\n") : std::string(1, c);
  return text;
}

TEST_F(TableEncodingTest, EqualsThatOfScikitLearn) {
  const auto golden = nlohmann::json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/tables.json"));
  const nlohmann::json& table = golden["encoding"]["table"];
  CsvOptions train{.files = {folder_.write_text("train.csv", with_target(table["train"]))}};
  train.target_kind = TargetKind::kNumbers;
  train.blanks = BlankCells::kFill;
  train.words = WordCells::kOneHot;
  train.standardize = true;
  const CsvOptions eval{.files = {folder_.write_text("eval.csv", with_target(table["eval"]))},
                        .target_kind = TargetKind::kNumbers};
  const DataOptions options{.train = train, .eval = eval};
  for (const Split split : {Split::kTrain, Split::kEval}) {
    const nlohmann::json& expected = table[split == Split::kTrain ? "encoded_train" : "encoded_eval"];
    const DatasetPtr set = make_dataset(options, split);
    ASSERT_EQ(set->size(), std::ssize(expected));
    for (std::int64_t i = 0; i < set->size(); ++i) {
      EXPECT_THAT(drawn(*set, {.index = i}).values,
                  ::testing::Pointwise(::testing::FloatNear(1e-6f), expected[i].get<std::vector<float>>()))
          << i;
    }
  }
}

TEST(BlankCell, IsEmptyOrSaysThatThereIsNoValue) {
  for (const char* const blank : {"", "  ", "NA", "n/a", "NaN", "null", " ? ", "NULL"})
    EXPECT_TRUE(is_blank_cell(blank));
  for (const char* const word : {"0", "none", "-", "N", "nano"}) EXPECT_FALSE(is_blank_cell(word));
}

}  // namespace
}  // namespace lockstep::data
