// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/volumes.h"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "runtime/data/formats/nifti.h"
#include "runtime/data/make_dataset.h"
#include "tests/runtime/data/nifti_files.h"

namespace lockstep::data {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kMost = 1 << 20;

class VolumesTest : public testing::Test {
 protected:
  VolumesTest() {
    std::filesystem::create_directory(folder_.path("images"));
    std::filesystem::create_directory(folder_.path("masks"));
  }
  /// Voxel i of channel 0 is i, its mask i modulo `classes`, or whether i is even.
  void write_pair(const std::string& name, std::int16_t x, std::int16_t y, std::int16_t z, int classes = 2) const {
    std::vector<float> image, mask;
    for (int i = 0; i < x * y * z; ++i) {
      image.push_back(static_cast<float>(i));
      mask.push_back(static_cast<float>(i % classes));
    }
    const auto packed = [&name](const Bytes& bytes) { return name.ends_with(".gz") ? gzipped(bytes) : bytes; };
    folder_.write("images/" + name, packed(nifti_bytes({x, y, z}, image)));
    folder_.write("masks/" + name, packed(nifti_bytes({x, y, z}, mask)));
  }
  VolumesOptions options() const { return {.images = folder_.path("images"), .masks = folder_.path("masks")}; }
  std::string error() const {
    return error_of([this] { VolumesDataset(this->options()); });
  }

  TemporaryFolder folder_;
};

TEST_F(VolumesTest, AreReadAsNibabelReadsThem) {
  const json golden = json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/nifti.json"));
  for (const auto& [name, volume] : golden["volumes"].items()) {
    const std::string path = folder_.write("volume.nii", bytes_of_hex(volume["file"]));
    const NiftiHeader header = read_nifti_header(path, kMost);
    const std::vector<std::int64_t> shape = volume["shape"];
    ASSERT_EQ(header.shape, Shape(std::span<const std::int64_t>(shape))) << name;
    std::vector<float> values(static_cast<std::size_t>(header.shape.numel()));
    read_nifti(path, header, {0, header.shape[0]}, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_FLOAT_EQ(values[i], volume["values"][i].get<float>()) << name << ", number " << i;
    }
  }
}

TEST_F(VolumesTest, PairsAreSortedByName) {
  write_pair("b.nii", 3, 2, 2);
  write_pair("a.nii.gz", 3, 2, 2);
  folder_.write("images/notes.txt", {1});
  const VolumesDataset set(options());
  EXPECT_EQ(set.size(), 2);
  EXPECT_EQ(set.sample_shape(), (Shape{2, 2, 3, 1}));
  EXPECT_EQ(set.target_shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(set.classes(), 0);
  for (std::int64_t i = 0; i < 2; ++i) {
    const Drawn sample = drawn(set, {.index = i});
    EXPECT_EQ(sample.values[7], 7);
    EXPECT_EQ(sample.target[7], 1);
  }
}

TEST_F(VolumesTest, MasksOfClassesAreCounted) {
  write_pair("a.nii", 3, 2, 2, 3);
  VolumesOptions options = this->options();
  options.target_kind = TargetKind::kClasses;
  const VolumesDataset set(options);
  EXPECT_EQ(set.classes(), 3);
  EXPECT_EQ(set.targets_per_sample(), 12);
  EXPECT_THAT(drawn(set, {}).labels, ElementsAre(0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2));
  options.classes = 2;
  EXPECT_THAT(error_of([&] { drawn(VolumesDataset(options), {}); }),
              HasSubstr("a.nii (sample 0): the mask holds 2, which is none of the 2 classes"));
  options.target_kind = TargetKind::kNumbers;
  options.classes = 0;
  EXPECT_THAT(error_of([&] { drawn(VolumesDataset(options), {}); }), HasSubstr("holds 2, which is outside [0, 1]"));
}

TEST_F(VolumesTest, VolumesOfSeveralExtentsAreCutIntoPatches) {
  write_pair("a.nii", 4, 3, 2);
  write_pair("b.nii", 5, 4, 6);
  EXPECT_THAT(error(), HasSubstr("b.nii has shape [6, 4, 5, 1], but a.nii has [2, 3, 4, 1]"));
  try {
    VolumesDataset set(options());
    ADD_FAILURE() << "took volumes of several shapes";
  } catch (const StorageError& error) {
    EXPECT_THAT(error.advice(), HasSubstr("patch: [2, 3, 4] }")) << "which each of them holds";
  }
  DataOptions both{.train = options(), .eval = options()};
  both.augment.volume.patch = Shape{2, 2, 3};
  const DatasetPtr train = make_dataset(both, Split::kTrain);
  EXPECT_EQ(train->sample_shape(), (Shape{2, 2, 3, 1}));
  EXPECT_EQ(describe(both, Split::kTrain).target_shape, (Shape{2, 2, 3}));
  std::set<float> firsts;
  for (std::uint64_t epoch = 0; epoch < 40; ++epoch) {
    const Drawn sample = drawn(*train, {.index = 1, .epoch = epoch, .seed = 2});
    EXPECT_EQ(sample, drawn(*train, {.index = 1, .epoch = epoch, .seed = 2}));
    EXPECT_EQ(sample.values[11] - sample.values[0], 4 * 5 + 5 + 2) << "the patch's last voxel";
    for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(sample.target[i], static_cast<int>(sample.values[i]) % 2);
    firsts.insert(sample.values[0]);
  }
  EXPECT_GT(firsts.size(), 20u) << "of 5 * 3 * 3 places";
  EXPECT_EQ(drawn(*make_dataset(both, Split::kEval), {.index = 1}).values[0], 2 * 20 + 1 * 5 + 1) << "the middle";
  both.augment.volume.patch = Shape{3, 2, 3};
  EXPECT_THAT(error_of([&] { make_dataset(both, Split::kTrain); }),
              HasSubstr("a.nii has shape [2, 3, 4, 1], which holds no patch"));
}

TEST_F(VolumesTest, APatchIsReadNoFurtherThanItsLastPlane) {
  // Two channels of [4, 2, 3], one behind the other.
  std::vector<float> values(48);
  std::iota(values.begin(), values.end(), 0.0f);
  Bytes bytes = nifti_bytes({3, 2, 4, 2}, values);
  const std::string whole = folder_.write("whole.nii.gz", gzipped(bytes));
  bytes.resize(bytes.size() - 6 * sizeof(float));  // the last plane of the second channel
  const std::string cut = folder_.write("cut.nii", bytes);
  const NiftiHeader header = read_nifti_header(whole, kMost);
  std::vector<float> planes(24);
  for (const std::string& path : {whole, cut}) {
    read_nifti(path, header, {1, 3}, planes);
    for (std::size_t voxel = 0; voxel < 12; ++voxel) {
      EXPECT_EQ(planes[2 * voxel], static_cast<float>(6 + voxel));
      EXPECT_EQ(planes[2 * voxel + 1], static_cast<float>(24 + 6 + voxel));
    }
  }
  EXPECT_THAT(error_of([&] { read_nifti(cut, header, {2, 4}, planes); }), HasSubstr("cut.nii is too short"));
}

TEST_F(VolumesTest, ClassesOfTrainingVolumesOfSeveralExtentsAreCountedForEvaluation) {
  write_pair("a.nii", 4, 3, 2, 3);
  write_pair("b.nii", 5, 4, 6, 5);
  VolumesOptions options = this->options();
  options.target_kind = TargetKind::kClasses;
  DataOptions both{.train = options, .eval = options};
  both.augment.volume.patch = Shape{2, 2, 3};
  EXPECT_EQ(make_dataset(both, Split::kEval)->classes(), 5);
  EXPECT_EQ(describe(both, Split::kEval).target_shape, (Shape{2, 2, 3}));
}

TEST_F(VolumesTest, HaveAsManyChannelsAsEachOther) {
  write_pair("a.nii", 2, 2, 2);
  write_pair("b.nii", 2, 2, 2);
  folder_.write("images/b.nii", nifti_bytes({2, 2, 2, 2}, std::vector<float>(16)));
  VolumesOptions options = this->options();
  options.patch = Shape{2, 2, 2};
  EXPECT_THAT(error_of([&] { VolumesDataset set(options); }), HasSubstr("b.nii has 2 channels, but a.nii has 1"));
}

TEST_F(VolumesTest, AHeaderThatPromisesMoreThanItsFileCanHoldIsRefusedUnread) {
  const Bytes header = nifti_header({640, 640, 640});
  constexpr std::int64_t kManyVoxels = 1 << 28;
  const std::string plain = folder_.write("a.nii", header);
  EXPECT_THAT(error_of([&] { read_nifti_header(plain, kManyVoxels); }),
              HasSubstr("a.nii is too short: its header promises 262144000 numbers of 4 bytes behind byte 352, but the "
                        "file has 352 bytes"));
  const std::string packed = folder_.write("a.nii.gz", gzipped(header));
  EXPECT_THAT(error_of([&] { read_nifti_header(packed, kManyVoxels); }), HasSubstr(" gzipped bytes"));
  // Zeros pack as well as anything does.
  const std::string zeros =
      folder_.write("z.nii.gz", gzipped(nifti_bytes({100, 100, 100}, std::vector<float>(1'000'000))));
  EXPECT_EQ(read_nifti_header(zeros, kManyVoxels).shape, (Shape{100, 100, 100, 1}));
}

TEST_F(VolumesTest, NpyFilesAreVolumesToo) {
  Bytes npy{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
  const std::string text = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 1), }\n";
  npy.push_back(static_cast<std::uint8_t>(text.size()));
  npy.push_back(0);
  npy.insert(npy.end(), text.begin(), text.end());
  npy.insert(npy.end(), {1, 0, 0, 1});
  folder_.write("images/a.npy", npy);
  folder_.write("masks/a.npy", npy);
  const VolumesDataset set(options());
  EXPECT_EQ(set.sample_shape(), (Shape{2, 2, 1, 1}));
  EXPECT_THAT(drawn(set, {}).values, ElementsAre(1, 0, 0, 1));
}

TEST_F(VolumesTest, FoldersThatDoNotFitAreNamed) {
  EXPECT_THAT(error(), HasSubstr("images: holds no volume"));
  write_pair("a.nii", 2, 2, 2);
  folder_.write("images/b.nii", nifti_bytes({1, 1, 1}, {0}));
  EXPECT_THAT(error(), HasSubstr("images/b.nii has no partner in "));
  std::filesystem::rename(folder_.path("images/b.nii"), folder_.path("masks/b.nii"));
  EXPECT_THAT(error(), HasSubstr("masks/b.nii has no partner in "));
  folder_.write("images/b.nii", nifti_bytes({1, 2, 1}, {0, 0}));
  EXPECT_THAT(error(), HasSubstr("masks/b.nii has shape [1, 1, 1, 1], but its image [1, 2, 1, 1]"));
  EXPECT_THAT([] { VolumesDataset({.images = "a"}); },
              ThrowsMessage<FieldError>(HasSubstr("volumes.masks: is required")));
}

TEST_F(VolumesTest, HeadersThatCannotBeTrustedAreNamedWithTheByte) {
  const auto refusal = [this](std::size_t at, auto value) {
    Bytes bytes = nifti_bytes({2, 1, 1}, {1, 2});
    put(bytes, at, value);
    const std::string path = folder_.write("bad.nii", bytes);
    return error_of([&] { read_nifti_header(path, kMost); });
  };
  EXPECT_THAT(refusal(0, std::int32_t{540}), HasSubstr("bad.nii at byte 0: is a NIfTI-2 file"));
  EXPECT_THAT(refusal(0, std::int32_t{7}), HasSubstr("at byte 0: is no NIfTI file"));
  EXPECT_THAT(refusal(40, std::int16_t{2}), HasSubstr("at byte 40: has 2 dimensions"));
  EXPECT_THAT(refusal(44, std::int16_t{-1}), HasSubstr("at byte 44: has an extent of -1"));
  EXPECT_THAT(refusal(70, std::int16_t{128}), HasSubstr("at byte 70: holds numbers of type 128"));
  EXPECT_THAT(refusal(108, 12.0f), HasSubstr("at byte 108: its voxels begin at byte 12"));
  EXPECT_THAT(refusal(108, 1e30f), HasSubstr("at byte 108"));
  EXPECT_THAT(refusal(112, std::numeric_limits<float>::quiet_NaN()), HasSubstr("at byte 112"));
  EXPECT_THAT(refusal(345, 'i'), HasSubstr("at byte 344"));
  const std::string large = folder_.write("large.nii", nifti_header({32767, 32767, 32767}));
  EXPECT_THAT(error_of([&] { read_nifti_header(large, kMost); }), HasSubstr("more voxels than the 1048576"));
}

TEST_F(VolumesTest, AFileThatIsCutOffIsNamedAndABombIsReadNoFurtherThanItsHeaderSays) {
  const Bytes whole = nifti_bytes({2, 2, 1}, {1, 2, 3, 4});
  const std::string path = folder_.write("cut.nii", Bytes(whole.begin(), whole.end() - 1));
  std::vector<float> values(4);
  EXPECT_THAT(error_of([&] {
                read_nifti(path, read_nifti_header(path, kMost), {0, 1}, values);
              }),
              HasSubstr("cut.nii is too short"));
  Bytes bomb = whole;
  bomb.resize(std::size_t{1} << 26);
  const std::string packed = folder_.write("bomb.nii.gz", gzipped(bomb));
  read_nifti(packed, read_nifti_header(packed, kMost), {0, 1}, values);
  EXPECT_THAT(values, ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace lockstep::data
