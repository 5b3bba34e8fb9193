// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/find_data.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>

#include "runtime/init/dataset_text.h"
#include "tests/runtime/data/image_files.h"

namespace lockstep::init {
namespace {

using data::Bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A .npy file of bytes, all of them `value`.
Bytes npy_bytes(const std::string& descr, const std::string& shape, std::size_t bytes, std::uint8_t value = 0) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append(63 - (header.size() + 10) % 64, ' ').append("\n");
  std::string file = "\x93NUMPY";
  for (const std::size_t byte : {std::size_t{1}, std::size_t{0}, header.size() & 255, header.size() >> 8}) {
    file += static_cast<char>(byte);
  }
  file.append(header).append(bytes, static_cast<char>(value));
  return Bytes(file.begin(), file.end());
}

/// CIFAR records: their label bytes, then pixels.
Bytes cifar_bytes(const std::vector<Bytes>& labels) {
  Bytes file;
  for (const Bytes& each : labels) {
    file.insert(file.end(), each.begin(), each.end());
    file.insert(file.end(), 3072, 200);
  }
  return file;
}

class FindDataTest : public ::testing::Test {
 protected:
  FoundData find(const std::vector<std::string>& names, const FindOptions& options = {}) const {
    std::vector<std::filesystem::path> paths;
    for (const std::string& name : names) paths.emplace_back(folder_.path(name));
    return find_data(paths, options);
  }
  std::string refusal(const std::vector<std::string>& names, const FindOptions& options = {}) const {
    try {
      find(names, options);
    } catch (const UsageError& error) {
      return std::string(error.what()) + " " + error.advice();
    }
    return "no error";
  }
  void make(const std::string& name) const { std::filesystem::create_directories(folder_.path(name)); }
  std::string at(const std::string& name) const { return folder_.path(name); }

  data::TemporaryFolder folder_;
};

TEST_F(FindDataTest, FoldersOfClassesAreImagesOfAboutTheirSize) {
  make("train/cat");
  make("train/dog");
  make("test/cat");
  make("val/dog");
  for (const char* file : {"train/cat/a.png", "train/dog/b.png", "test/cat/c.png", "val/dog/d.png"}) {
    folder_.write(file, data::png_bytes(data::gradient(120, 100)));
  }
  const FoundData found = find({""});
  const auto train = std::get<data::ImageFolderOptions>(found.options.train);
  EXPECT_EQ(train.folder, at("train"));
  EXPECT_EQ(train.size, 96);
  EXPECT_EQ(train.resize, 96);
  EXPECT_EQ(std::get<data::ImageFolderOptions>(*found.options.eval).folder, at("val"));  // rather than test
}

TEST_F(FindDataTest, LargeImagesAreCroppedTo224) {
  make("images/cat");
  make("images/dog");
  folder_.write("images/cat/a.jpg", data::jpeg_bytes(data::gradient(500, 300)));
  EXPECT_THAT(refusal({"images"}), HasSubstr("of one class alone, cat"));
  folder_.write("images/dog/a.jpg", data::jpeg_bytes(data::gradient(300, 500)));
  for (const char* name : {"", "images"}) {
    const FoundData found = find({name});
    EXPECT_EQ(std::get<data::ImageFolderOptions>(found.options.train),
              (data::ImageFolderOptions{.folder = at("images")}));
    EXPECT_FALSE(found.options.eval);
  }
}

TEST_F(FindDataTest, ImagesThatAreStoredTurnedAreTurnedUpright) {
  for (const char* name : {"cat", "dog"}) {
    make(name);
    folder_.write(std::string(name) + "/a.jpg", data::jpeg_bytes(data::gradient(40, 20)));
  }
  EXPECT_FALSE(std::get<data::ImageFolderOptions>(find({""}).options.train).exif_orientation);
  folder_.write("cat/b.jpg", data::turned_jpeg_bytes(data::gradient(40, 20)));
  const FoundData found = find({""});
  EXPECT_TRUE(std::get<data::ImageFolderOptions>(found.options.train).exif_orientation);
  EXPECT_THAT(found.notes, testing::Contains(HasSubstr("1 of 3 images looked at are stored turned")));
}

/// A grey PNG, a value a pixel.
Bytes mask_bytes(int width, int height, std::uint8_t other) {
  data::Pixels pixels{width, height, 1, Bytes(static_cast<std::size_t>(width * height))};
  for (std::size_t i = 0; i < pixels.values.size(); i += 3) pixels.values[i] = other;
  return data::png_bytes(pixels);
}

TEST_F(FindDataTest, ImagesBesideTheirMasksAreNoClasses) {
  for (const char* name : {"images", "masks", "val/images", "val/masks"}) make(name);
  for (const std::string part : {"", "val/"}) {
    folder_.write(part + "images/a.jpg", data::jpeg_bytes(data::gradient(100, 70)));
    folder_.write(part + "masks/a.png", mask_bytes(100, 70, 4));
  }
  const FoundData found = find({""});
  const auto train = std::get<data::ImageMasksOptions>(found.options.train);
  EXPECT_EQ(train, (data::ImageMasksOptions{.images = at("images"), .masks = at("masks"), .size = 64, .classes = 5}));
  EXPECT_EQ(std::get<data::ImageMasksOptions>(*found.options.eval).masks, at("val/masks"));
  EXPECT_FALSE(found.masks);

  folder_.write("masks/a.png", mask_bytes(100, 70, 255));
  const FoundData one = find({""});
  EXPECT_TRUE(one.masks);
  EXPECT_EQ(std::get<data::ImageMasksOptions>(one.options.train).target_kind, data::TargetKind::kNumbers);
}

TEST_F(FindDataTest, TurnedImagesAreTurnedWhereTheirMasksAreUpright) {
  for (const char* name : {"images", "masks"}) make(name);
  folder_.write("images/a.jpg", data::turned_jpeg_bytes(data::gradient(40, 32)));
  for (const bool upright : {true, false}) {
    folder_.write("masks/a.png", upright ? mask_bytes(32, 40, 1) : mask_bytes(40, 32, 1));
    EXPECT_EQ(std::get<data::ImageMasksOptions>(find({""}).options.train).exif_orientation, upright);
  }
}

TEST_F(FindDataTest, ImagesOfOtherFormatsAreNamedWhereNothingIsFound) {
  make("gifs/cat");
  folder_.write("gifs/cat/a.gif", {1});
  EXPECT_THAT(refusal({"gifs"}), HasSubstr("holds no data that a job can name; 1 image of a format that is not read is "
                                           "left out: 1 .gif (the first: cat/a.gif)"));
}

TEST_F(FindDataTest, WhatImagesAreForIsToldByAWordOfTheFolderInAnyCase) {
  int number = 0;
  for (const auto& [train, eval] : {std::pair("Train", "Test"), std::pair("training_set", "test_set"),
                                    std::pair("Training", "Testing"), std::pair("train/train", "val/val")}) {
    const std::string root = "of_" + std::to_string(number++);
    for (const std::string part : {train, eval}) {
      for (const char* name : {"/cat", "/dog"}) {
        make(root + "/" + part + name);
        folder_.write(root + "/" + part + name + "/a.png", data::png_bytes(data::gradient(20, 20)));
      }
    }
    const FoundData found = find({root});
    EXPECT_EQ(std::get<data::ImageFolderOptions>(found.options.train).folder, at(root + "/" + train));
    ASSERT_TRUE(found.options.eval) << eval;
    EXPECT_EQ(std::get<data::ImageFolderOptions>(*found.options.eval).folder, at(root + "/" + eval));
  }
}

TEST_F(FindDataTest, ImagesForEvaluationAloneAreNotTwoClasses) {
  for (const char* name : {"val/cat", "val/dog", "test/cat", "test/dog"}) {
    make(name);
    folder_.write(std::string(name) + "/a.png", data::png_bytes(data::gradient(20, 20)));
  }
  EXPECT_THAT(refusal({""}), HasSubstr("to evaluate on, as val, but none to train on"));
}

TEST_F(FindDataTest, TrainingImagesOfOneClassAreRefused) {
  make("train/cat");
  make("val/cat");
  folder_.write("train/cat/a.png", data::png_bytes(data::gradient(20, 20)));
  folder_.write("val/cat/a.png", data::png_bytes(data::gradient(20, 20)));
  EXPECT_THAT(refusal({""}), HasSubstr("train holds images of one class alone, cat"));
}

TEST_F(FindDataTest, ImagesWithoutAFolderOfTheirClassAreRefused) {
  folder_.write("a.png", data::png_bytes(data::gradient(8, 8)));
  EXPECT_THAT(refusal({""}), HasSubstr("no folder of a class"));
}

TEST_F(FindDataTest, IdxFilesAreToldByTheirHeaders) {
  folder_.write("train-images-idx3-ubyte.gz", data::gzipped(data::idx_bytes({4, 5, 5})));
  folder_.write("train-labels-idx1-ubyte.gz", data::gzipped(data::idx_bytes({4})));
  folder_.write("t10k-images", data::idx_bytes({2, 5, 5}));
  folder_.write("t10k-labels", data::idx_bytes({2}));
  const FoundData found = find({""});
  EXPECT_EQ(std::get<data::IdxOptions>(found.options.train).images, at("train-images-idx3-ubyte.gz"));
  EXPECT_EQ(std::get<data::IdxOptions>(*found.options.eval).labels, at("t10k-labels"));
  std::filesystem::remove(at("t10k-labels"));
  EXPECT_THAT(refusal({""}), HasSubstr("1 and 0 to evaluate on"));
}

TEST_F(FindDataTest, CifarIsToldFromTokensByItsLabels) {
  folder_.write("data_batch_1.bin", cifar_bytes({{0}, {9}}));
  folder_.write("test_batch.bin", cifar_bytes({{3}}));
  const FoundData ten = find({""});
  EXPECT_THAT(std::get<data::CifarOptions>(ten.options.train).files, ElementsAre(at("data_batch_1.bin")));
  EXPECT_THAT(std::get<data::CifarOptions>(*ten.options.eval).files, ElementsAre(at("test_batch.bin")));

  folder_.write("train.bin", cifar_bytes({{19, 99}, {0, 20}}));
  EXPECT_EQ(std::get<data::CifarOptions>(find({"train.bin"}).options.train).labels, data::CifarLabels::kCifar100Fine);
  folder_.write("tokens.bin", Bytes(3073, 200));
  EXPECT_TRUE(std::holds_alternative<data::TokensOptions>(find({"tokens.bin"}).options.train));
}

TEST_F(FindDataTest, ArraysArePairsByNameOrByOrder) {
  folder_.write("x_train.npy", npy_bytes("<f4", "4, 3", 48));
  folder_.write("y_train.npy", npy_bytes("<i8", "4,", 32));
  folder_.write("x_val.npy", npy_bytes("<f4", "2, 3", 24));
  folder_.write("y_val.npy", npy_bytes("<i8", "2,", 16));
  const FoundData found = find({""});
  const auto train = std::get<data::ArraysOptions>(found.options.train);
  EXPECT_EQ(train.features, at("x_train.npy"));
  EXPECT_EQ(train.targets, at("y_train.npy"));
  EXPECT_EQ(train.target_kind, data::TargetKind::kClasses);
  EXPECT_EQ(std::get<data::ArraysOptions>(*found.options.eval).targets, at("y_val.npy"));

  folder_.write("out.npy", npy_bytes("<f4", "4, 2", 32));
  const auto named = std::get<data::ArraysOptions>(find({"x_train.npy", "out.npy"}).options.train);
  EXPECT_EQ(named.targets, at("out.npy"));
  EXPECT_EQ(named.target_kind, data::TargetKind::kNumbers);
  EXPECT_THAT(refusal({"out.npy"}), HasSubstr("two .npy files; found 1"));
}

TEST_F(FindDataTest, ChannelsFirstAreRefused) {
  folder_.write("y.npy", npy_bytes("<i8", "2,", 16));
  folder_.write("x.npy", npy_bytes("|u1", "2, 3, 8, 8", 384));
  EXPECT_THAT(refusal({"x.npy", "y.npy"}), ::testing::AllOf(HasSubstr("samples of shape [3, 8, 8] have channels first"),
                                                            HasSubstr("numpy.moveaxis(x, 1, -1)")));
  folder_.write("x.npy", npy_bytes("|u1", "2, 1, 8, 6, 20", 1920));
  EXPECT_THAT(refusal({"x.npy", "y.npy"}), HasSubstr("channels first"));
  for (const auto& [shape, bytes] : {std::pair("2, 8, 8, 3", 384), std::pair("2, 3, 40, 8", 1920), {"2, 3, 40", 240}}) {
    folder_.write("x.npy", npy_bytes("|u1", shape, static_cast<std::size_t>(bytes)));
    EXPECT_EQ(refusal({"x.npy", "y.npy"}), "no error") << shape;
  }
}

TEST_F(FindDataTest, ZeroAndOneAVoxelAreMasks) {
  folder_.write("images.npy", npy_bytes("<f4", "2, 4, 4, 4, 1", 512));
  folder_.write("masks.npy", npy_bytes("|u1", "2, 4, 4, 4", 128, 1));
  const FoundData masks = find({""});
  EXPECT_TRUE(masks.masks);
  EXPECT_EQ(std::get<data::ArraysOptions>(masks.options.train).target_kind, data::TargetKind::kNumbers);
  folder_.write("masks.npy", npy_bytes("|u1", "2, 4, 4, 4", 128, 3));
  const FoundData classes = find({""});
  EXPECT_FALSE(classes.masks);
  EXPECT_EQ(std::get<data::ArraysOptions>(classes.options.train).target_kind, data::TargetKind::kClasses);
}

TEST_F(FindDataTest, ATablesHeaderDelimiterAndColumnsAreSeen) {
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

TEST_F(FindDataTest, AQuotedHeaderIsReadWithItsOwnDelimiter) {
  for (const std::string delimiter : {",", ";", "\t", "|"}) {
    folder_.write_text("t.csv", "\"a\"" + delimiter + "\"b\"\n1.5" + delimiter + "0\n2.5" + delimiter + "1\n");
    const auto table = std::get<data::CsvOptions>(find({"t.csv"}).options.train);
    EXPECT_EQ(table.delimiter, delimiter);
    EXPECT_TRUE(table.header);
  }
  folder_.write_text("t.csv", "\"a\" \"b\"\n1,2\n");
  EXPECT_THROW(find({"t.csv"}), StorageError);
}

TEST_F(FindDataTest, AColumnWithoutANameOfItsOwnIsNamedByItsNumber) {
  folder_.write_text("t.csv", ",city,x,x,y\n0,a,1.5,2.5,0\n1,a,3.5,4.5,1\n");
  EXPECT_THAT(std::get<data::CsvOptions>(find({"t.csv"}).options.train).features, ElementsAre("0", "2", "3"));
  folder_.write_text("t.csv", ",city,0,y\n7,a,1.5,0\n8,b,3.5,1\n");
  const FoundData found = find({"t.csv"});
  EXPECT_THAT(std::get<data::CsvOptions>(found.options.train).features, ElementsAre("city", "0"));
  EXPECT_THAT(found.notes, ::testing::Contains("left out: 0, because its number names another column"));
}

TEST_F(FindDataTest, TablesWithOtherColumnsThanTheOneToTrainOnAreLeftOut) {
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

TEST_F(FindDataTest, ATableOfNumbersHasNoHeader) {
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

TEST_F(FindDataTest, ATableWithoutTheTargetDoesNotEvaluate) {
  folder_.write_text("train.csv", "a,b,y\n1,2.5,0\n3,4.5,1\n");
  folder_.write_text("test.csv", "a,b\n1,2.5\n");
  const FoundData found = find({""});
  EXPECT_FALSE(found.options.eval);
  EXPECT_THAT(found.notes, ::testing::Contains(HasSubstr("its columns are others")));
}

TEST_F(FindDataTest, ATableWithoutAColumnToLearnFromIsRefused) {
  folder_.write_text("t.csv", "a,b\nred,x\nred,y\n");
  EXPECT_THAT(refusal({"t.csv"}), HasSubstr("no column to learn from beside the target: a, because it has one value"));
}

TEST_F(FindDataTest, ColumnsOfATableThatTellNothingAreLeftOutWithTheReason) {
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

TEST_F(FindDataTest, BlankCellsAndWordsFarBehindInATableAreSeen) {
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

TEST_F(FindDataTest, NumbersOfLinesAreLearnedFromWhereThereIsNothingElse) {
  std::string text = "day,height\n";
  for (int i = 0; i < 60; ++i) text += fmt::format("{},{}\n", i, 0.5 * i);
  folder_.write_text("t.csv", text);
  EXPECT_THAT(std::get<data::CsvOptions>(find({"t.csv"}).options.train).features, IsEmpty());
}

TEST_F(FindDataTest, WholeNumbersOfFewValuesAreClassesAndOthersNumbers) {
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
TEST_F(FindDataTest, OfAWideTableTheFirst64MiBAreLookedAt) {
  std::string row = "1", other = "2";
  for (int cell = 1; cell < 100'000; ++cell) row += ",1", other += ",2";
  std::string text;
  for (int i = 0; i < 20; ++i) text += row + '\n' + other + '\n';
  folder_.write_text("t.csv", text + "word" + row.substr(1) + '\n');
  EXPECT_EQ(std::get<data::CsvOptions>(find({"t.csv"}).options.train).words, data::WordCells::kRefuse);
  folder_.write_text("t.csv", row + "\nword" + other.substr(1) + '\n');
  EXPECT_EQ(std::get<data::CsvOptions>(find({"t.csv"}).options.train).words, data::WordCells::kOneHot);
}

TEST_F(FindDataTest, TheLastTenthOfATextIsForEvaluation) {
  folder_.write_text("a.txt", std::string(10000, 'a'));
  const FoundData found = find({""});
  EXPECT_EQ(std::get<data::TokensOptions>(found.options.train).end, 0.9);
  EXPECT_EQ(std::get<data::TokensOptions>(*found.options.eval).begin, 0.9);
  EXPECT_EQ(std::get<data::TokensOptions>(found.options.train).context, 128);

  folder_.write_text("short.txt", std::string(1000, 'a'));
  EXPECT_EQ(std::get<data::TokensOptions>(find({"short.txt"}).options.train).context, 32);
  folder_.write_text("page.md", std::string(10000, 'a'));
  EXPECT_TRUE(std::holds_alternative<data::TokensOptions>(find({"page.md"}).options.train));
}

TEST_F(FindDataTest, AVocabularyIsNoTextToLearn) {
  folder_.write_text("corpus.txt", std::string(10000, 'a'));
  folder_.write_text("vocab.json", "{}");
  EXPECT_THAT(refusal({"corpus.txt", "vocab.json"}), HasSubstr("1 files vocab.json and 0 merges.txt"));
  folder_.write_text("merges.txt", "");
  for (const auto& names : {std::vector<std::string>{""}, {"corpus.txt", "vocab.json", "merges.txt"}}) {
    const FoundData found = find(names);
    const auto options = std::get<data::TokensOptions>(found.options.train);
    EXPECT_THAT(options.files, ElementsAre(at("corpus.txt")));
    EXPECT_EQ(options.vocab_file, at("vocab.json"));
    EXPECT_EQ(options.merges_file, at("merges.txt"));
    EXPECT_EQ(std::get<data::TokensOptions>(*found.options.eval).vocab_file, at("vocab.json"));
  }
  folder_.write_text("tokenizer.json", "{}");
  for (const auto& names : {std::vector<std::string>{""}, {"corpus.txt", "tokenizer.json"}}) {
    const FoundData found = find(names);
    const auto options = std::get<data::TokensOptions>(found.options.train);
    EXPECT_EQ(options.tokenizer_file, at("tokenizer.json")) << "which stands for vocab.json and merges.txt";
    EXPECT_EQ(options.vocab_file, "");
    EXPECT_EQ(std::get<data::TokensOptions>(*found.options.eval).tokenizer_file, at("tokenizer.json"));
    EXPECT_THAT(dataset_text(*found.options.eval, {}), HasSubstr("tokenizer_file: \"" + at("tokenizer.json")));
  }
  folder_.write_text("a.model", "");
  folder_.write_text("b.model", "");
  EXPECT_EQ(std::get<data::TokensOptions>(find({""}).options.train).tokenizer_file, at("tokenizer.json"));
  EXPECT_EQ(std::get<data::TokensOptions>(find({"corpus.txt", "a.model"}).options.train).tokenizer_file, at("a.model"));
  EXPECT_THAT(refusal({"corpus.txt", "a.model", "b.model"}), HasSubstr("found 2 tokenizers beside texts"));
}

TEST_F(FindDataTest, AReadmeOrANoteAmongOtherFilesIsNoTextToLearn) {
  make("scans");
  folder_.write_text("scans/README.txt", std::string(10000, 'a'));
  for (int i = 0; i < 6; ++i) folder_.write("scans/" + std::to_string(i) + ".dcm", Bytes(200, 0));
  EXPECT_THAT(refusal({"scans"}), HasSubstr("holds no data"));
  folder_.write_text("scans/notes.txt", std::string(10000, 'a'));
  EXPECT_THAT(refusal({"scans"}), HasSubstr("6 files that are no data that a job can name, beside"));
  EXPECT_TRUE(std::holds_alternative<data::TokensOptions>(find({"scans/README.txt"}).options.train));
}

TEST_F(FindDataTest, ALinkToItselfIsPassedOver) {
  std::filesystem::create_symlink("loop", at("loop"));
  folder_.write_text("t.csv", "1,2.5,0.25\n3,4.5,0.75\n");
  EXPECT_TRUE(std::holds_alternative<data::CsvOptions>(find({""}).options.train));
}

TEST_F(FindDataTest, APipeIsNotWaitedFor) {
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal({"pipe"}), HasSubstr("neither a file nor a folder"));
  EXPECT_THAT(refusal({""}), HasSubstr("holds no data"));
}

TEST_F(FindDataTest, WhatIsNoDataIsRefusedWithAListOfWhatWouldBe) {
  make("empty");
  EXPECT_THAT(refusal({"empty"}), ::testing::AllOf(HasSubstr("holds no data"), HasSubstr("x.npy and y.npy")));
  EXPECT_THAT(refusal({"absent"}), HasSubstr("there is no"));
  folder_.write("noise", {0, 1, 0, 7});
  EXPECT_THAT(refusal({"noise"}), HasSubstr("is no data"));
  EXPECT_THAT(refusal({"empty", "noise"}), HasSubstr("is a folder"));
}

}  // namespace
}  // namespace lockstep::init
