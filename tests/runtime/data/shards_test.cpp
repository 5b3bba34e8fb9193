// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/shards.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <filesystem>

#include "runtime/data/formats/brace_expansion.h"
#include "runtime/data/image_folder.h"
#include "runtime/data/make_dataset.h"
#include "tests/runtime/data/image_files.h"
#include "tests/runtime/data/tar_files.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string jpeg(int width, int height) { return text_of(jpeg_bytes(gradient(width, height))); }

class ShardsTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::vector<TarEntry>& entries) const {
    return folder_.write(name, tar_bytes(entries));
  }
  /// What is said of a file of these members.
  std::string refusal(const std::vector<TarEntry>& entries) const {
    const std::string path = write("bad.tar", entries);
    return error_of([&] { ShardsDataset({.files = {path}, .size = 14}); });
  }

  TemporaryFolder folder_;
};

TEST_F(ShardsTest, SamplesStandInTheOrderOfFilesAndMembers) {
  write("t-00.tar", {{"b/1.jpg", jpeg(40, 30)},
                     {"b/1.cls", "2\n"},
                     {"b/1.json", "{}"},
                     {"a.cls", "0"},
                     {"a.PNG", text_of(png_bytes(gradient(20, 20)))}});
  write("t-01.tar", {{"c", "", '5'}, {"c/x.y.z", "other"}, {"c/x.jpeg", jpeg(16, 50)}, {"c/x.cls", " 1 "}});
  const ShardsDataset set({.files = {folder_.path("t-{00..01}.tar")}, .size = 14});
  EXPECT_EQ(set.size(), 3);
  EXPECT_EQ(set.sample_shape(), (Shape{14, 14, 3}));
  EXPECT_EQ(set.classes(), 3);
  EXPECT_THAT(set.describe().labels, ElementsAre(2, 0, 1));
  for (std::int64_t i = 0; i < 3; ++i) {
    const Drawn sample = drawn(set, {.index = i});
    EXPECT_NEAR(sample.values[(7 * 14 + 7) * 3], 0.5f, 0.05f);
    EXPECT_EQ(sample.labels[0], set.describe().labels[static_cast<std::size_t>(i)]);
  }
}

TEST_F(ShardsTest, AnImageIsDrawnAsThatOfAFolder) {
  std::filesystem::create_directories(folder_.path("images/a"));
  folder_.write("images/a/x.jpg", jpeg_bytes(gradient(90, 61)));
  const RandomResizedCropOptions crop;
  const ImageFolderDataset folder({.folder = folder_.path("images"), .size = 14, .random_resized_crop = crop});
  const ShardsDataset shards(
      {.files = {write("t.tar", {{"x.jpg", jpeg(90, 61)}, {"x.cls", "0"}})}, .size = 14, .random_resized_crop = crop});
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    EXPECT_EQ(drawn(shards, {.epoch = epoch, .seed = 3}), drawn(folder, {.epoch = epoch, .seed = 3}));
  }
}

TEST_F(ShardsTest, LongNamesOfPaxAndGnuAreRead) {
  const std::string longer(300, 'n');
  const std::string record = "path=" + longer + ".jpg\n";
  const std::string pax = std::to_string(record.size() + 4) + " " + record + "30 mtime=1350244992.023960108\n";
  const std::string path = write(
      "t.tar",
      {{"pax", pax, 'x'}, {"short", jpeg(20, 20)}, {"././@LongLink", longer + ".cls" + '\0', 'L'}, {"short", "1"}});
  const ShardsDataset set({.files = {path}, .size = 8});
  EXPECT_THAT(set.describe().labels, ElementsAre(1));
}

TEST_F(ShardsTest, WhatIsWrongIsNamedWithFileAndByte) {
  const TarEntry image{"a.jpg", jpeg(20, 20)}, label{"a.cls", "1"};
  EXPECT_THAT(refusal({image}), HasSubstr("bad.tar at byte 0: the key \"a\" has no .cls"));
  EXPECT_THAT(refusal({label, {"b.jpg", image.content}, {"b.cls", "1"}}), HasSubstr("the key \"a\" has no image"));
  EXPECT_THAT(refusal({image, {"a.png", ""}, label}), HasSubstr("\"a.png\" is the second of its kind"));
  EXPECT_THAT(refusal({image, label, {"b.jpg", ""}, {"b.cls", "0"}, image, label}), HasSubstr("\"a\" comes twice"));
  EXPECT_THAT(refusal({image, {"a.cls", "one"}}), HasSubstr("\"a.cls\" holds no label"));
  EXPECT_THAT(refusal({image, {"a.cls", "-1"}}), HasSubstr("\"a.cls\" holds no label"));
  EXPECT_THAT(refusal({image, {"a.cls", std::string(33, '1')}}), HasSubstr("has 33 bytes, more than the 32"));
  EXPECT_THAT(refusal({image, {"a.cls", "99999999"}}), HasSubstr("is too high for a class"));
  EXPECT_THAT(refusal({image, {"a.cls", "9223372036854775807"}}), HasSubstr("is too high for a class"));
  EXPECT_THAT(refusal({{"/etc/a.jpg", ""}}), HasSubstr("the name \"/etc/a.jpg\" leaves the archive"));
  EXPECT_THAT(refusal({{"x/../../a.jpg", ""}}), HasSubstr("leaves the archive"));
  EXPECT_THAT(refusal({{"..", ""}}), HasSubstr("leaves the archive"));
  EXPECT_THAT(refusal({image, label, {"b.jpg", "", '2'}}), HasSubstr("\"b.jpg\" is a link"));
  EXPECT_THAT(refusal({{"b.jpg", "", '1'}}), HasSubstr("is a link"));
  EXPECT_THAT(refusal({{"b.jpg", "", '4'}}), HasSubstr("is neither a file nor a folder"));
  EXPECT_THAT(refusal({{"pax", "12 size=1x\n", 'x'}, image}), HasSubstr("pax record"));
  EXPECT_THAT(refusal({{"pax", "22 GNU.sparse.major=1\n", 'x'}, image}), HasSubstr("is a sparse file"));
  EXPECT_THAT(refusal({{"notes.txt", "none"}}), HasSubstr("holds no sample"));
}

TEST_F(ShardsTest, FilesThatAreCutOffOrCompressedAreRefused) {
  const Bytes whole = tar_bytes({{"a.jpg", jpeg(20, 20)}, {"a.cls", "1"}});
  const auto error = [&](const Bytes& bytes) {
    const std::string path = folder_.write("bad.tar", bytes);
    return error_of([&] { ShardsDataset({.files = {path}, .size = 14}); });
  };
  for (std::size_t size = 0; size < whole.size() - 1024; size += 256) {
    EXPECT_THAT(error(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))),
                HasSubstr("bad.tar at byte "));
  }
  EXPECT_THAT(error(Bytes(whole.begin(), whole.end() - 1024)), HasSubstr("found 0 bytes"));
  EXPECT_THAT(error(gzipped(whole)), HasSubstr("is compressed with gzip"));
  Bytes damaged = whole;
  damaged[1] ^= 1;
  EXPECT_THAT(error(damaged), HasSubstr("checksum is wrong"));
}

TEST_F(ShardsTest, NothingFollowsAnArchivesEndButZeros) {
  const Bytes first = tar_bytes({{"a.jpg", jpeg(20, 20)}, {"a.cls", "1"}});
  Bytes file = first;
  file.resize(file.size() + 9000);
  const std::string path = folder_.write("t.tar", file);
  EXPECT_EQ(ShardsDataset({.files = {path}, .size = 14}).size(), 1);
  const auto error = [&](const Bytes& bytes) {
    folder_.write("t.tar", bytes);
    return error_of([&] { ShardsDataset({.files = {path}, .size = 14}); });
  };
  file = first;
  const Bytes second = tar_bytes({{"b.jpg", jpeg(20, 20)}, {"b.cls", "0"}});
  file.insert(file.end(), second.begin(), second.end());
  EXPECT_THAT(error(file), HasSubstr("t.tar at byte " + std::to_string(first.size()) + ": a second archive begins"));
  file = first;
  file.resize(file.size() + 300);
  file.back() = 1;
  EXPECT_THAT(error(file), HasSubstr("at byte " + std::to_string(first.size()) + ": bytes follow the archive's end"));
}

// The members behind were lost: the file has its full size, and a copy was cut off.
TEST_F(ShardsTest, ATebibyteOfZerosBehindAnArchiveIsDamage) {
  const std::string path = write("t.tar", {{"a.jpg", jpeg(20, 20)}, {"a.cls", "1"}});
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
  EXPECT_THAT(
      error_of([&] { ShardsDataset({.files = {path}, .size = 14}); }),
      testing::AllOf(HasSubstr("bytes follow the archive's end, and the first ones are zeros"), HasSubstr("10995116")));
}

TEST_F(ShardsTest, ADamagedImageIsNamedWhenItIsDrawn) {
  const std::string path = write("t.tar", {{"a.jpg", jpeg(20, 20).substr(0, 200)}, {"a.cls", "0"}});
  const ShardsDataset set({.files = {path}, .size = 14});
  EXPECT_THAT(error_of([&] { drawn(set, {}); }), HasSubstr("t.tar at byte 512 (sample 0): cannot be decoded"));
}

TEST_F(ShardsTest, EvaluationHasTheClassesOfTheTraining) {
  const DataOptions both{
      .train = ShardsOptions{.files = {write("t.tar", {{"a.jpg", jpeg(20, 20)}, {"a.cls", "4"}})}, .size = 8},
      .eval = ShardsOptions{.files = {write("e.tar", {{"a.jpg", jpeg(20, 20)}, {"a.cls", "1"}})}, .size = 8}};
  EXPECT_EQ(make_dataset(both, Split::kEval)->classes(), 5);
}

TEST_F(ShardsTest, TheTrainingFilesAreNotReadAgainForClassesThatAreKnown) {
  DataOptions both{
      .train = ShardsOptions{.files = {write("t.tar", {{"a.jpg", jpeg(20, 20)}, {"a.cls", "4"}})}, .size = 8},
      .eval = ShardsOptions{.files = {write("e.tar", {{"a.jpg", jpeg(20, 20)}, {"a.cls", "1"}})}, .size = 8}};
  set_counted_classes(both, make_dataset(both, Split::kTrain)->classes());
  std::filesystem::remove(folder_.path("t.tar"));
  EXPECT_EQ(make_dataset(both, Split::kEval)->classes(), 5);
  EXPECT_EQ(describe(both, Split::kEval).classes, 5);
}

TEST(Braces, CountAndList) {
  EXPECT_THAT(expand_braces("a-{008..010}.tar"), ElementsAre("a-008.tar", "a-009.tar", "a-010.tar"));
  EXPECT_THAT(expand_braces("{x,y}-{1..2}"), ElementsAre("x-1", "x-2", "y-1", "y-2"));
  EXPECT_THAT(expand_braces("{9..10}"), ElementsAre("9", "10"));
  EXPECT_THAT(expand_braces("{0..10}"), testing::AllOf(testing::Contains("0"), testing::Not(testing::Contains("00"))));
  EXPECT_THAT(expand_braces("{09..10}"), ElementsAre("09", "10"));
  EXPECT_THAT(expand_braces("{9..010}"), ElementsAre("009", "010"));
  EXPECT_THAT(expand_braces("/{x}/{}/{1..2}.tar"), ElementsAre("/{x}/{}/1.tar", "/{x}/{}/2.tar"));
  EXPECT_THAT(expand_braces("plain"), ElementsAre("plain"));
  EXPECT_THAT(expand_braces("/\\{a,b\\}/\\x{1..2}\\"), ElementsAre("/{a,b}/\\x1\\", "/{a,b}/\\x2\\"));
  for (const char* bad : {"{1..", "{2..1}", "{a..b}", "{}", "{a}", "x/{a}", "{0..1000000}", "{0..9999}{0..9999}"}) {
    EXPECT_THAT([&] { expand_braces(bad); }, ThrowsMessage<UsageError>(HasSubstr(bad))) << bad;
  }
}

// A job of a few KB could ask for more than a machine holds.
TEST(Braces, StandForAtMost64MiB) {
  const std::string zeros(100'000, '0');
  const auto too_long = ThrowsMessage<UsageError>(HasSubstr("names of files of more than 64 MiB in all"));
  EXPECT_THAT([&] { expand_braces("{" + zeros + "..9999}"); }, too_long);
  EXPECT_THAT([&] { expand_braces("{0..9999}" + zeros); }, too_long);
  EXPECT_THAT([&] { expand_braces(zeros + "{0..9999}"); }, too_long);
  EXPECT_EQ(expand_braces(zeros + "{0..99}").size(), 100u);
}

}  // namespace
}  // namespace lockstep::data
