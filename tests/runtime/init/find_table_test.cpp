// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "runtime/init/dataset_text.h"
#include "tests/runtime/init/find_data_fixture.h"

namespace lockstep::init {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using FindTableTest = FindDataTest;

TEST_F(FindTableTest, ATablesHeaderDelimiterAndColumnsAreSeen) {
  folder_.write_text("t.csv", "size;name;color\n1.5;a;red\n2.5;b;blue\n");
  const FoundData found = find({"t.csv"});
  const auto table = std::get<data::CsvOptions>(found.options.train);
  EXPECT_TRUE(table.header);
  EXPECT_EQ(table.delimiter, ";");
  EXPECT_THAT(table.features, IsEmpty());
  EXPECT_EQ(table.words, data::WordCells::kOneHot);
  EXPECT_EQ(table.target_kind, data::TargetKind::kClasses);
  EXPECT_EQ(std::get<data::CsvOptions>(find({"t.csv"}, {.target = "size"}).options.train).target_kind,
            data::TargetKind::kNumbers);
}

TEST_F(FindTableTest, AQuotedHeaderIsReadWithItsOwnDelimiter) {
  for (const std::string delimiter : {",", ";", "\t", "|"}) {
    folder_.write_text("t.csv", "\"a\"" + delimiter + "\"b\"\n1.5" + delimiter + "0\n2.5" + delimiter + "1\n");
    const auto table = std::get<data::CsvOptions>(find({"t.csv"}).options.train);
    EXPECT_EQ(table.delimiter, delimiter);
    EXPECT_TRUE(table.header);
  }
  folder_.write_text("t.csv", "\"a\" \"b\"\n1,2\n");
  EXPECT_THROW(find({"t.csv"}), StorageError);
}

TEST_F(FindTableTest, AColumnWithoutANameOfItsOwnIsNamedByItsNumber) {
  folder_.write_text("t.csv", ",city,x,x,y\n0,a,1.5,2.5,0\n1,a,3.5,4.5,1\n");
  EXPECT_THAT(std::get<data::CsvOptions>(find({"t.csv"}).options.train).features, ElementsAre("0", "2", "3"));
  folder_.write_text("t.csv", ",city,0,y\n7,a,1.5,0\n8,b,3.5,1\n");
  const FoundData found = find({"t.csv"});
  EXPECT_THAT(std::get<data::CsvOptions>(found.options.train).features, ElementsAre("city", "0"));
  EXPECT_THAT(found.notes, ::testing::Contains("left out: 0, because its number names another column"));
}

TEST_F(FindTableTest, TablesWithOtherColumnsThanTheOneToTrainOnAreLeftOut) {
  folder_.write_text("sample_submission.csv", "id,y\n3,0\n");
  folder_.write_text("train.csv", "id,x,y\n1,2.5,0\n2,4.5,1\n");
  folder_.write_text("test.csv", "id,x\n3,2.5\n");
  const FoundData found = find({""});
  EXPECT_THAT(std::get<data::CsvOptions>(found.options.train).files, ElementsAre(at("train.csv")));
  EXPECT_FALSE(found.options.eval);
  EXPECT_THAT(found.notes, ::testing::Contains(HasSubstr("columns are others: " + at("sample_submission.csv"))));
  folder_.write_text("sample_submission.csv", "\"id\";\"y\"\n3;0\n");
  EXPECT_THAT(std::get<data::CsvOptions>(find({""}).options.train).files, ElementsAre(at("train.csv")));

  folder_.write_text("more.csv", "a,y\n1,2\n");
  EXPECT_THAT(refusal({"more.csv", "sample_submission.csv"}), HasSubstr("differ from those of " + at("more.csv")));
}

TEST_F(FindTableTest, ATableOfNumbersHasNoHeader) {
  folder_.write_text("train.csv", "1,2.5,0.25\n3,4.5,0.75\n");
  folder_.write_text("test.csv", "1,2.5,0.25\n");
  const FoundData found = find({""});
  const auto table = std::get<data::CsvOptions>(found.options.train);
  EXPECT_FALSE(table.header);
  EXPECT_THAT(table.features, IsEmpty());
  EXPECT_EQ(table.target_kind, data::TargetKind::kNumbers);
  EXPECT_THAT(std::get<data::CsvOptions>(*found.options.eval).files, ElementsAre(at("test.csv")));
  EXPECT_EQ(std::get<data::CsvOptions>(find({"train.csv"}, {.target = "0"}).options.train).target_kind,
            data::TargetKind::kClasses);
  EXPECT_THAT(refusal({"train.csv"}, {.target = "x"}), HasSubstr("no column \"x\""));
}

TEST_F(FindTableTest, ATableWithoutTheTargetDoesNotEvaluate) {
  folder_.write_text("train.csv", "a,b,y\n1,2.5,0\n3,4.5,1\n");
  folder_.write_text("test.csv", "a,b\n1,2.5\n");
  const FoundData found = find({""});
  EXPECT_FALSE(found.options.eval);
  EXPECT_THAT(found.notes, ::testing::Contains(HasSubstr("its columns are others")));
}

TEST_F(FindTableTest, ATableWithoutAColumnToLearnFromIsRefused) {
  folder_.write_text("t.csv", "a,b\nred,x\nred,y\n");
  EXPECT_THAT(refusal({"t.csv"}), HasSubstr("no column to learn from beside the target: a, because it has one value"));
}

TEST_F(FindTableTest, ColumnsOfManyWordsAreEmbedded) {
  const auto table_of = [&](int towns) {
    std::string text = "town,size,y\n";
    for (int i = 0; i < 60; ++i) text += fmt::format("town {},{}.5,{}\n", i % towns, i, i % 3);
    folder_.write_text("t.csv", text);
    return find({"t.csv"});
  };
  const FoundData many = table_of(17);
  EXPECT_EQ(std::get<data::CsvOptions>(many.options.train).one_hot_up_to, 16);
  const auto reason = std::ranges::find(many.reasons, "one_hot_up_to", &Reason::field);
  ASSERT_NE(reason, many.reasons.end());
  EXPECT_EQ(reason->text, "of columns with more words mlp learns an embedding: town (17)");
  EXPECT_THAT(explained_dataset_text(many.options.train, folder_.path(""), many.reasons),
              HasSubstr("one_hot_up_to: 16   # of columns with more words"));
  EXPECT_EQ(std::get<data::CsvOptions>(table_of(16).options.train).one_hot_up_to, data::CsvOptions().one_hot_up_to);
}

TEST_F(FindTableTest, ColumnsOfATableThatTellNothingAreLeftOutWithTheReason) {
  std::string text = "id,name,ticket,year,empty,country,age,town,weight,y\n";
  for (int i = 0; i < 60; ++i) {
    const int line = i * 7 % 60;  // shuffled
    text += fmt::format("{0},person {0},{1},{2},,de,{3},{4},{5},{6}\n", line * 3 / 2,
                        "t" + std::to_string(line * 2 / 3), 1990 + i % 5, i == 3 ? "NA" : std::to_string(20 + i),
                        i % 2 == 0 ? "Ulm" : "Bonn", 1000 * i * i, i % 3);
  }
  folder_.write_text("train.csv", text);
  folder_.write_text("test.csv", text);
  const FoundData found = find({""});
  const auto table = std::get<data::CsvOptions>(found.options.train);
  EXPECT_THAT(table.features, ElementsAre("year", "age", "town", "weight"));
  EXPECT_EQ(table.blanks, data::BlankCells::kFill);
  EXPECT_EQ(table.words, data::WordCells::kOneHot);
  EXPECT_TRUE(table.standardize);
  EXPECT_THAT(
      found.notes,
      ElementsAre(HasSubstr("the target is column \"y\", classes"), "left out: id, because it numbers the lines",
                  "left out: name, because its words are all different, as names are",
                  "left out: ticket, because it has 40 different words in 60 lines, as names have",
                  "left out: empty, because all its cells are blank", "left out: country, because it has one value"));
  const auto reason = [&found](const std::string& field) {
    const auto at = std::ranges::find(found.reasons, field, &Reason::field);
    return at == found.reasons.end() ? std::string() : at->text;
  };
  EXPECT_THAT(reason("blanks"), HasSubstr("age (1 of 60 lines)"));
  EXPECT_THAT(reason("words"), HasSubstr("town (2)"));
  // Evaluation data take these from the training data.
  EXPECT_EQ(std::get<data::CsvOptions>(*found.options.eval), (data::CsvOptions{.files = {at("test.csv")}}));
}

TEST_F(FindTableTest, BlankCellsAndWordsFarBehindInATableAreSeen) {
  std::string text = "x,late,spoilt,y\n";
  for (int i = 0; i < 10'100; ++i) {
    text += fmt::format("{},{},{},{}\n", i % 7, i == 10'050 ? "?" : std::to_string(i % 5),
                        i == 10'060 ? "many" : std::to_string(i % 900), i % 2);
  }
  folder_.write_text("t.csv", text);
  const FoundData found = find({"t.csv"});
  const auto table = std::get<data::CsvOptions>(found.options.train);
  EXPECT_EQ(table.blanks, data::BlankCells::kFill);
  EXPECT_THAT(table.features, ElementsAre("x", "late"));
  EXPECT_THAT(found.notes, ::testing::Contains("left out: spoilt, because it has \"many\" among numbers"));
  ASSERT_GE(found.reasons.size(), 2U);
  EXPECT_THAT(found.reasons[1].text, HasSubstr("late (1 of 10100 lines)"));
}

TEST_F(FindTableTest, NumbersOfLinesAreLearnedFromWhereThereIsNothingElse) {
  std::string text = "day,height\n";
  for (int i = 0; i < 60; ++i) text += fmt::format("{},{}\n", i, 0.5 * i);
  folder_.write_text("t.csv", text);
  EXPECT_THAT(std::get<data::CsvOptions>(find({"t.csv"}).options.train).features, IsEmpty());
}

TEST_F(FindTableTest, WholeNumbersOfFewValuesAreClassesAndOthersNumbers) {
  const auto kind_of = [this](int values, int first) {
    std::string text = "x,y\n";
    for (int i = 0; i < 200; ++i) text += fmt::format("{},{}\n", i % 7, first + i % values);
    folder_.write_text("t.csv", text);
    return std::get<data::CsvOptions>(find({"t.csv"}).options.train).target_kind;
  };
  EXPECT_EQ(kind_of(10, 3), data::TargetKind::kClasses);
  EXPECT_EQ(kind_of(11, 3), data::TargetKind::kNumbers);
  EXPECT_EQ(kind_of(100, 0), data::TargetKind::kClasses);
  EXPECT_EQ(kind_of(101, 0), data::TargetKind::kNumbers);
}

// Ten thousand rows of it would take gigabytes.
TEST_F(FindTableTest, OfAWideTableTheFirst64MiBAreLookedAt) {
  std::string row = "1", other = "2";
  for (int cell = 1; cell < 100'000; ++cell) row += ",1", other += ",2";
  std::string text;
  for (int i = 0; i < 20; ++i) text += row + '\n' + other + '\n';
  folder_.write_text("t.csv", text + "word" + row.substr(1) + '\n');
  EXPECT_EQ(std::get<data::CsvOptions>(find({"t.csv"}).options.train).words, data::WordCells::kRefuse);
  folder_.write_text("t.csv", row + "\nword" + other.substr(1) + '\n');
  EXPECT_EQ(std::get<data::CsvOptions>(find({"t.csv"}).options.train).words, data::WordCells::kOneHot);
}

}  // namespace
}  // namespace lockstep::init
