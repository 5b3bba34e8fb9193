// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/data_digest.h"

#include <gmock/gmock.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/data/make_dataset.h"
#include "tests/runtime/data/image_files.h"
#include "tests/runtime/data/npy_files.h"
#include "tests/runtime/data/tar_files.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// What the files of a kind are written with.
struct Contents {
  int samples = 6;
  bool reversed = false;  ///< the labels
  bool black = false;     ///< all content

  int label(int i) const { return (reversed ? samples - 1 - i : i) % 5; }
  std::uint8_t value(int i, int at) const { return static_cast<std::uint8_t>(black ? 0 : 16 * i + at % 16); }
  /// Of all samples, so many bytes each.
  Bytes values(int bytes) const {
    Bytes all;
    for (int i = 0; i < samples; ++i) {
      for (int at = 0; at < bytes; ++at) all.push_back(value(i, at));
    }
    return all;
  }
  Bytes labels() const {
    Bytes all;
    for (int i = 0; i < samples; ++i) all.push_back(static_cast<std::uint8_t>(label(i)));
    return all;
  }
  Bytes image(int i) const {
    Pixels pixels{8, 8, 3, {}};
    for (int at = 0; at < 8 * 8 * 3; ++at) pixels.values.push_back(value(i, at));
    return png_bytes(pixels);
  }
};

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Bytes idx_header(std::initializer_list<int> extents) {
  Bytes bytes;
  append_uint32(bytes, 0x800 | static_cast<std::uint32_t>(extents.size()));
  for (const int extent : extents) append_uint32(bytes, static_cast<std::uint32_t>(extent));
  return bytes;
}

DatasetOptions idx(const TemporaryFolder& folder, const Contents& contents) {
  return IdxOptions{.images = folder.write("i", idx_header({contents.samples, 4, 4}) + contents.values(16)),
                    .labels = folder.write("l", idx_header({contents.samples}) + contents.labels())};
}

DatasetOptions cifar(const TemporaryFolder& folder, const Contents& contents) {
  Bytes records;
  for (int i = 0; i < contents.samples; ++i) {
    records.push_back(static_cast<std::uint8_t>(contents.label(i)));
    for (int at = 0; at < 3072; ++at) records.push_back(contents.value(i, at));
  }
  return CifarOptions{.files = {folder.write("c.bin", records)}};
}

DatasetOptions arrays(const TemporaryFolder& folder, const Contents& contents) {
  const std::string count = std::to_string(contents.samples);
  return ArraysOptions{.features = folder.write("x.npy", npy_bytes("|u1", "(" + count + ", 3)", contents.values(3))),
                       .targets = folder.write("y.npy", npy_bytes("|u1", "(" + count + ",)", contents.labels()))};
}

DatasetOptions csv(const TemporaryFolder& folder, const Contents& contents) {
  std::string text = "u,v,kind\n";
  for (int i = 0; i < contents.samples; ++i) {
    text += std::to_string(contents.value(i, 0)) + "," + std::to_string(contents.value(i, 1)) + ",";
    text += static_cast<char>('a' + contents.label(i));
    text += '\n';
  }
  return CsvOptions{.files = {folder.write_text("t.csv", text)}};
}

DatasetOptions image_folder(const TemporaryFolder& folder, const Contents& contents) {
  std::filesystem::remove_all(folder.path("images"));
  for (int i = 0; i < contents.samples; ++i) {
    const std::string name = std::string("images/") + static_cast<char>('a' + contents.label(i));
    std::filesystem::create_directories(folder.path(name));
    folder.write(name + "/" + std::to_string(i) + ".png", contents.image(i));
  }
  return ImageFolderOptions{.folder = folder.path("images"), .size = 4};
}

DatasetOptions shards(const TemporaryFolder& folder, const Contents& contents) {
  std::vector<TarEntry> entries;
  for (int i = 0; i < contents.samples; ++i) {
    const std::string key = std::to_string(i);
    entries.push_back({key + ".png", text_of(contents.image(i))});
    entries.push_back({key + ".cls", std::to_string(contents.label(i))});
  }
  return ShardsOptions{.files = {folder.write("t.tar", tar_bytes(entries))}, .size = 4};
}

DatasetOptions text(const TemporaryFolder& folder, const Contents& contents) {
  return TokensOptions{.files = {folder.write("t.txt", contents.values(4))}, .context = 3};
}

DatasetOptions numbers(const TemporaryFolder& folder, const Contents& contents) {
  return TokensOptions{.files = {folder.write("t.bin", contents.values(8))},
                       .context = 3,
                       .vocabulary = 65536,
                       .masked = {{.share = 0.5}}};
}

DatasetOptions encoded(const TemporaryFolder& folder, const Contents& contents) {
  std::string words;
  for (const std::uint8_t value : contents.values(4)) words += value % 3 == 0 ? 'a' : 'b';
  std::ifstream golden(LOCKSTEP_SOURCE_DIR "/tests/golden/byte_pairs.json");
  const nlohmann::json vocabulary = nlohmann::json::parse(golden)["vocabulary"];
  std::string merges = "#version: 0.2\n";
  for (const auto& merge : vocabulary["merges"]) merges += merge.get<std::string>() + "\n";
  return TokensOptions{.files = {folder.write_text("t.txt", words)},
                       .context = 1,
                       .vocab_file = folder.write_text("vocab.json", vocabulary["vocab"].dump()),
                       .merges_file = folder.write_text("merges.txt", merges)};
}

DatasetOptions volumes(const TemporaryFolder& folder, const Contents& contents) {
  for (const char* name : {"images", "masks"}) {
    std::filesystem::remove_all(folder.path(name));
    std::filesystem::create_directories(folder.path(name));
  }
  for (int i = 0; i < contents.samples; ++i) {
    Bytes image, mask;
    for (int at = 0; at < 8; ++at) {
      image.push_back(contents.value(i, at));
      mask.push_back(static_cast<std::uint8_t>(contents.label(i) == at));
    }
    const std::string name = std::string("/").append(std::to_string(i)).append(".npy");
    folder.write("images" + name, npy_bytes("|u1", "(2, 2, 2)", image));
    folder.write("masks" + name, npy_bytes("|u1", "(2, 2, 2)", mask));
  }
  return VolumesOptions{.images = folder.path("images"), .masks = folder.path("masks")};
}

struct Kind {
  const char* name;
  DatasetOptions (*write)(const TemporaryFolder&, const Contents&);
  bool has_labels = true;    ///< besides the content
  bool labels_sort = false;  ///< the samples, so that the same labels in another order are another order of the content
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class Digest : public testing::TestWithParam<Kind> {
 protected:
  /// Of files that are written anew.
  DataDigest written(const Contents& contents) const {
    const TemporaryFolder folder;
    return digest({.train = GetParam().write(folder, contents)});
  }
  static DataDigest digest(const DataOptions& options) {
    return digest_of("data.train", *make_dataset(options, Split::kTrain));
  }
};

INSTANTIATE_TEST_SUITE_P(
    , Digest,
    testing::Values(Kind{"idx", idx}, Kind{"cifar", cifar}, Kind{"arrays", arrays}, Kind{"csv", csv},
                    Kind{.name = "image_folder", .write = image_folder, .labels_sort = true}, Kind{"shards", shards},
                    Kind{.name = "text", .write = text, .has_labels = false},
                    Kind{.name = "numbers", .write = numbers, .has_labels = false},
                    Kind{.name = "encoded", .write = encoded, .has_labels = false}, Kind{"volumes", volumes}),
    [](const auto& kind) { return kind.param.name; });

TEST_P(Digest, OfACopyIsTheSame) {
  const DataDigest first = written({});
  EXPECT_EQ(first.labels.size(), 32u);
  EXPECT_EQ(first.content.size(), 32u);
  EXPECT_THAT(changes({first}, {written({})}), IsEmpty());
}

TEST_P(Digest, DoesNotDependOnTheTimeOfWriting) {
  const TemporaryFolder folder;
  const DataOptions options{.train = GetParam().write(folder, {})};
  const DataDigest first = digest(options);
  const auto earlier = std::filesystem::file_time_type::clock::now() - std::chrono::hours(5);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path(""))) {
    std::filesystem::last_write_time(entry.path(), earlier);
  }
  EXPECT_THAT(changes({first}, {digest(options)}), IsEmpty());
}

TEST_P(Digest, ShowsOtherLabels) {
  if (!GetParam().has_labels) GTEST_SKIP() << "it has no labels";
  const std::vector<std::string> lines = changes({written({})}, {written({.reversed = true})});
  if (GetParam().labels_sort) {
    EXPECT_THAT(lines, ElementsAre("data.train: content differs"));
  } else {
    EXPECT_THAT(lines, ElementsAre("data.train: labels differ"));
  }
}

TEST_P(Digest, ShowsOtherContentOfTheSameSizeAndTime) {
  const TemporaryFolder folder;
  const DataOptions options{.train = GetParam().write(folder, {})};
  const DataDigest first = digest(options);
  GetParam().write(folder, {.black = true});
  EXPECT_THAT(changes({first}, {digest(options)}), ElementsAre("data.train: content differs"));
}

TEST_P(Digest, ShowsFewerSamples) {
  const std::vector<std::string> lines = changes({written({.samples = 6})}, {written({.samples = 5})});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::MatchesRegex("data.train: [0-9]+ samples of .* -> [0-9]+ samples of .*"));
}

TEST_P(Digest, IsThatOfTheDataBelowTheirChanges) {
  const TemporaryFolder folder;
  const DataOptions plain{.train = GetParam().write(folder, {})};
  DataOptions changed = plain;
  if (make_dataset(plain, Split::kTrain)->vocabulary() > 0) GTEST_SKIP() << "tokens are not normalised";
  changed.normalize = {.mean = {0.5}, .std = {0.25}};
  EXPECT_THAT(changes({digest(plain)}, {digest(changed)}), IsEmpty());
}

DataDigest of(const DatasetOptions& options, Split split = Split::kTrain) {
  return digest_of("data.train", *make_dataset({.train = options, .eval = options}, split));
}

TEST(DigestOfGeneratedData, IsThatOfWhatIsDrawn) {
  const SyntheticOptions synthetic{.samples = 100, .shape = {4, 4, 1}, .classes = 3};
  EXPECT_THAT(changes({of(synthetic)}, {of(synthetic)}), IsEmpty());
  EXPECT_EQ(of(synthetic).form, "100 samples of [4, 4, 1], 3 classes");
  EXPECT_THAT(changes({of(synthetic)}, {of(synthetic, Split::kEval)}),
              ElementsAre("data.train: labels differ", "data.train: content differs"));
  const SpheresOptions spheres{.samples = 5, .shape = {8, 8, 8, 1}};
  SpheresOptions others = spheres;
  others.noise = 0.25;
  EXPECT_THAT(changes({of(spheres)}, {of(others)}), ElementsAre("data.train: content differs"));
}

/// Samples of a million numbers each, most of which cannot be read.
class Costly : public Dataset {
 public:
  std::int64_t size() const override { return 1000; }
  Shape sample_shape() const override { return {1000, 1000}; }
  std::int64_t classes() const override { return 0; }
  Shape target_shape() const override { return {1}; }
  void get(const SampleKey& key, const Sample& sample) const override {
    ++drawn_;
    if (key.index > 0) throw StorageError("broken");
    std::ranges::fill(sample.values, 1.0f);
    sample.target[0] = 2.0f;
  }
  mutable int drawn_ = 0;
};

TEST(DigestOfAnOwnDataSet, DrawsFewOfItsSamplesWhereTheyAreLarge) {
  const Costly costly;
  const DataDigest digest = digest_of("data.train", costly);
  EXPECT_EQ(costly.drawn_, 2);
  EXPECT_EQ(digest.form, "1000 samples of [1000, 1000], targets of [1]");
  EXPECT_EQ(digest_of("data.train", costly).content, digest.content);
}

TEST(DigestChanges, AreOfDataSetsThatBothHave) {
  const DataDigest train{"data.train", "5 samples", "a", "b"}, eval{"data.eval", "5 samples", "c", "d"};
  EXPECT_THAT(changes({train}, {train, eval}), IsEmpty());
  EXPECT_THAT(changes({train, eval}, {train}), IsEmpty());
  EXPECT_THAT(changes({}, {train}), IsEmpty());
  EXPECT_THAT(changes({train, eval}, {train, {"data.eval", "6 samples", "e", "f"}}),
              ElementsAre("data.eval: 5 samples -> 6 samples"));
}

}  // namespace
}  // namespace lockstep::data
