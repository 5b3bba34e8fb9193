// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/find_data.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "runtime/init/dataset_text.h"
#include "tests/runtime/data/image_files.h"
#include "tests/runtime/init/find_data_fixture.h"

namespace lockstep::init {
namespace {

using data::Bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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