// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/nifti_writer.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "runtime/data/formats/nifti.h"
#include "tests/runtime/data/nifti_files.h"

namespace lockstep::data {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kMostVoxels = 1 << 20;

Bytes content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<float> values_in(const std::string& path, const NiftiHeader& header) {
  std::vector<float> values(static_cast<std::size_t>(header.shape.numel()));
  read_nifti(path, header, {0, header.shape[0]}, values);
  return values;
}

json golden_geometries() {
  return json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/nifti.json"))["geometries"];
}

TEST(NiftiWriter, AffinesAreThoseThatNibabelReads) {
  const TemporaryFolder folder;
  const json geometries = golden_geometries();
  for (const auto& [name, golden] : geometries.items()) {
    const std::string path = folder.write("volume.nii", bytes_of_hex(golden["file"]));
    const NiftiHeader header = read_nifti_header(path, kMostVoxels);
    const Affine affine = affine_of(header.geometry, header.shape);
    for (std::size_t i = 0; i < 12; ++i) {
      EXPECT_NEAR(affine[i / 4][i % 4], golden["affine"][i].get<double>(), 1e-6) << name << ", number " << i;
    }
  }
}

TEST(NiftiWriter, WritesTheBytesOfNibabelInThePlaceOfTheInput) {
  const TemporaryFolder folder;
  const json geometries = golden_geometries();
  for (const auto& [name, golden] : geometries.items()) {
    const std::string read = folder.write("volume.nii", bytes_of_hex(golden["file"]));
    const NiftiHeader header = read_nifti_header(read, kMostVoxels);
    const std::string written = folder.path("out/" + name + ".nii");
    write_nifti(written, header.geometry, header.shape, values_in(read, header));
    EXPECT_EQ(content_of(written), bytes_of_hex(golden["written"])) << name;
  }
}

TEST(NiftiWriter, AGzippedFileReadsBackAndHasTheSameBytesEachTime) {
  const TemporaryFolder folder;
  const NiftiGeometry geometry{.pixdim = {1, 0.5f, 0.5f, 3}, .units = 2, .qform = 1, .offset = {1, 2, 3}};
  // More than one piece of the packer's.
  const Shape shape{70, 80, 60, 1};
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 2654435761u % 100003);
  write_nifti(folder.path("a.nii.gz"), geometry, shape, values);
  write_nifti(folder.path("b.nii.gz"), geometry, shape, values);
  EXPECT_EQ(content_of(folder.path("a.nii.gz")), content_of(folder.path("b.nii.gz")));
  const NiftiHeader header = read_nifti_header(folder.path("a.nii.gz"), kMostVoxels);
  EXPECT_EQ(header.geometry, geometry);
  EXPECT_EQ(header.shape, shape);
  EXPECT_EQ(values_in(folder.path("a.nii.gz"), header), values);
}

TEST(NiftiWriter, LabelsAreBytesWhereTheyFit) {
  const TemporaryFolder folder;
  const std::string path = folder.path("labels.nii");
  for (const auto& [highest, type] : {std::pair<std::int64_t, int>{255, 2}, {256, 8}}) {
    write_nifti(path, {}, {1, 2, 2}, std::vector<std::int64_t>{0, 1, 2, highest});
    const NiftiHeader header = read_nifti_header(path, kMostVoxels);
    EXPECT_EQ(header.type, type);
    EXPECT_THAT(values_in(path, header), ElementsAre(0, 1, 2, static_cast<float>(highest)));
  }
}

TEST(NiftiWriter, RefusesWhatTheFormatCannotHold) {
  const TemporaryFolder folder;
  const std::vector<float> two(2);
  EXPECT_THAT(
      [&] {
        write_nifti(folder.path("a.npy"), {}, {1, 1, 2, 1}, two);
      },
      ThrowsMessage<UsageError>(HasSubstr("must end in .nii or .nii.gz")));
  EXPECT_THAT(
      [&] {
        write_nifti(folder.path("a.nii"), {}, {1, 1, 3, 1}, two);
      },
      ThrowsMessage<ShapeError>(HasSubstr("found [1, 1, 3, 1] and 2 numbers")));
  const std::vector<float> long_row(40000);
  EXPECT_THAT(
      [&] {
        write_nifti(folder.path("a.nii"), {}, {1, 1, 40000, 1}, long_row);
      },
      ThrowsMessage<ShapeError>(HasSubstr("extents of 1 to 32767")));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path("")));
}

}  // namespace
}  // namespace lockstep::data
