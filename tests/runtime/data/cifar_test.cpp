// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/cifar.h"

#include <gmock/gmock.h>

#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using ::testing::HasSubstr;

Bytes cifar_bytes(std::size_t records, std::size_t label_bytes) {
  Bytes bytes;
  for (std::size_t r = 0; r < records; ++r) {
    for (std::size_t k = 0; k < label_bytes; ++k) bytes.push_back(static_cast<std::uint8_t>(r + 10 * k));
    for (std::size_t i = 0; i < 3072; ++i) bytes.push_back(static_cast<std::uint8_t>(i / 1024 * 64 + i % 64));
  }
  return bytes;
}

TEST(Cifar, TurnsPlanesIntoChannelsLast) {
  const TemporaryFolder folder;
  const DatasetPtr set =
      CifarKind::open({{folder.write("a", cifar_bytes(2, 1)), folder.write("b", cifar_bytes(3, 1))}});
  EXPECT_EQ(set->size(), 5);
  EXPECT_EQ(set->sample_shape(), (Shape{32, 32, 3}));
  EXPECT_EQ(set->classes(), 10);
  EXPECT_EQ(label(*set, 4), 2);
  const std::vector<float> image = sample(*set, {.index = 4});
  EXPECT_FLOAT_EQ(image[7 * 3 + 0], 7 / 255.0f);
  EXPECT_FLOAT_EQ(image[7 * 3 + 2], (128 + 7) / 255.0f);
}

TEST(Cifar, ReadsBothLabelsOfCifar100) {
  const TemporaryFolder folder;
  const std::string file = folder.write("train.bin", cifar_bytes(2, 2));
  EXPECT_EQ(label(*CifarKind::open({{file}, CifarLabels::kCifar100Coarse}), 1), 1);
  EXPECT_EQ(label(*CifarKind::open({{file}, CifarLabels::kCifar100Fine}), 1), 11);
}

TEST(Cifar, DamageIsNamed) {
  const TemporaryFolder folder;
  const auto error = [&](const Bytes& bytes) {
    return error_of([&] { CifarKind::open({{folder.write("x.bin", bytes)}}); });
  };
  Bytes bytes = cifar_bytes(2, 1);
  bytes.pop_back();
  EXPECT_THAT(error(bytes), HasSubstr("x.bin: expected a multiple of 3073 bytes, found 6145"));
  EXPECT_THAT(error({}), HasSubstr("found 0"));
  bytes = cifar_bytes(2, 1);
  bytes[3073] = 10;
  EXPECT_THAT(error(bytes), HasSubstr("label 10 of sample 1 is outside the 10 classes"));
  EXPECT_THAT(error_of([&] { CifarKind::open({{folder.path("none")}}); }), HasSubstr("No such file"));
}

}  // namespace
}  // namespace lockstep::data
