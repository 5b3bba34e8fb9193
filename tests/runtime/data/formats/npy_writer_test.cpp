// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/npy_writer.h"

#include <gmock/gmock.h>

#include "runtime/data/formats/npy.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;

TEST(NpyWriter, WritesWhatIsReadBack) {
  const TemporaryFolder folder;
  const std::vector<float> numbers{1.5f, -2, 0, 3, 4, 5};
  write_npy(folder.path("a.npy"), {2, 3}, std::span<const float>(numbers));
  const NpyArray array(folder.path("a.npy"));
  EXPECT_EQ(array.dtype(), "<f4");
  EXPECT_THAT(array.extents(), ElementsAre(2, 3));
  std::vector<float> values(6);
  array.read(0, values);
  EXPECT_EQ(values, numbers);

  const std::vector<std::int32_t> labels{-1, 70000};
  write_npy(folder.path("b.npy"), {2}, std::span<const std::int32_t>(labels));
  const NpyArray more(folder.path("b.npy"));
  EXPECT_EQ(more.dtype(), "<i4");
  std::vector<std::int64_t> read(2);
  more.read(0, read);
  EXPECT_THAT(read, ElementsAre(-1, 70000));
}

TEST(NpyWriter, HeadersAreNumpys) {
  const std::string header = npy_header("|u1", std::vector<std::int64_t>{3});
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_EQ(header.substr(10, 57), "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }");
  EXPECT_NE(npy_header("<f4", std::vector<std::int64_t>{2, 5}).find("(2, 5)"), std::string::npos);
}

TEST(NpyWriter, RefusesAnotherNumberOfElements) {
  const TemporaryFolder folder;
  const std::vector<std::uint8_t> labels{1, 2};
  EXPECT_THROW(write_npy(folder.path("a.npy"), {3}, std::span<const std::uint8_t>(labels)), ShapeError);
}

}  // namespace
}  // namespace lockstep::data
