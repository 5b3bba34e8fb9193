// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/idx.h"

#include <gmock/gmock.h>

#include <random>

#include "runtime/base/error.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using ::testing::HasSubstr;

TEST(Idx, ReadsPlainAndGzippedImages) {
  const TemporaryFolder folder;
  const Bytes images = idx_bytes({3, 2, 4});
  const Bytes labels = idx_bytes({3});
  const DatasetPtr plain = IdxKind::open({folder.write("i", images), folder.write("l", labels)});
  const DatasetPtr packed =
      IdxKind::open({folder.write("i.gz", gzipped(images)), folder.write("l.gz", gzipped(labels)), 10});
  EXPECT_EQ(plain->size(), 3);
  EXPECT_EQ(plain->sample_shape(), (Shape{2, 4, 1}));
  EXPECT_EQ(plain->classes(), 3);
  EXPECT_EQ(packed->classes(), 10);
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sample(*plain, {.index = i}), sample(*packed, {.index = i}));
    EXPECT_EQ(label(*plain, i), i);
    EXPECT_FLOAT_EQ(sample(*plain, {.index = i})[5], static_cast<float>(i * 8 + 5) / 255.0f);
  }
}

TEST(Idx, ReadsChannelsLast) {
  const TemporaryFolder folder;
  const DatasetPtr set = IdxKind::open({folder.write("i", idx_bytes({2, 2, 2, 3})), folder.write("l", idx_bytes({2}))});
  EXPECT_EQ(set->sample_shape(), (Shape{2, 2, 3}));
}

class IdxDamage : public testing::Test {
 protected:
  std::string error(const Bytes& images, const Bytes& labels, std::int64_t classes = 0) const {
    return error_of([&] {
      IdxKind::open({folder_.write("images", images), folder_.write("labels", labels), classes});
    });
  }
  TemporaryFolder folder_;
  Bytes images_ = idx_bytes({4, 2, 2});
  Bytes labels_ = idx_bytes({4});
};

TEST_F(IdxDamage, IsNamed) {
  EXPECT_THAT(error_of([&] {
                IdxKind::open({folder_.path("none"), folder_.path("none")});
              }),
              HasSubstr("cannot open " + folder_.path("none") + ": No such file"));
  EXPECT_THAT(error_of([&] { IdxKind::open({"/tmp", "/tmp"}); }), HasSubstr("cannot"));
  EXPECT_THAT(error(labels_, images_),
              HasSubstr("wrong magic number: expected 0x00000803 or 0x00000804, found 0x00000801"));
  EXPECT_THAT(error({}, labels_), HasSubstr("too short: expected 4 bytes, found 0"));
  Bytes images = images_;
  images.pop_back();
  EXPECT_THAT(error(images, labels_), HasSubstr("images is too short: expected 32 bytes, found 31"));
  images.assign(images_.begin(), images_.end());
  images.push_back(0);
  EXPECT_THAT(error(images, labels_), HasSubstr("images is too long: there are bytes behind the 32"));
  EXPECT_THAT(error(gzipped(images), labels_), HasSubstr("too long"));
  EXPECT_THAT(error(images_, idx_bytes({3})), HasSubstr("holds 4 images, but"));
  EXPECT_THAT(error(images_, labels_, 3), HasSubstr("label 3 of sample 3 is outside the 3 classes"));
  EXPECT_THAT(error(idx_bytes({0, 2, 2}), idx_bytes({0})), HasSubstr("holds no samples"));
  EXPECT_THAT(error(idx_bytes({4, 0, 2}), labels_), HasSubstr("have no pixels"));
}

TEST_F(IdxDamage, HugeExtentsNeitherOverflowNorAllocate) {
  for (const std::uint32_t extent : {0xffffffffu, 0x80000000u, 0x10000u}) {
    Bytes images;
    append_uint32(images, 0x804);
    for (int d = 0; d < 4; ++d) append_uint32(images, extent);
    EXPECT_THAT(error(images, labels_), testing::AnyOf(HasSubstr("overflow"), HasSubstr("too short")));
    EXPECT_THAT(error(gzipped(images), labels_), testing::AnyOf(HasSubstr("overflow"), HasSubstr("too short")));
  }
}

// A small packed file may hold as much; nothing of it is unpacked.
TEST_F(IdxDamage, MoreThanTheMachineHoldsIsRefusedUnread) {
  Bytes images;
  append_uint32(images, 0x803);
  for (const std::uint32_t extent : {4u, 1u << 23, 1u << 23}) append_uint32(images, extent);
  EXPECT_THAT(error(gzipped(images), labels_), HasSubstr("images takes 262144.0 GiB of memory or more on each rank"));
  Bytes labels;
  append_uint32(labels, 0x801);
  append_uint32(labels, 0xffffffffu);
  EXPECT_THAT(error(images_, gzipped(labels)), HasSubstr("holds 4 images, but"));
}

// A label is a byte of the file, and a number of eight bytes in memory.
TEST_F(IdxDamage, MoreLabelsThanMemoryHoldsAreRefusedUnread) {
  Bytes images, labels;
  for (const std::uint32_t number : {0x803u, 1u << 20, 1u, 1u}) append_uint32(images, number);
  for (const std::uint32_t number : {0x801u, 1u << 20}) append_uint32(labels, number);
  const IdxOptions options{folder_.write("images", gzipped(images)), folder_.write("labels", gzipped(labels))};
  EXPECT_THAT(error_of([&] { IdxKind::open(options, MemoryBudget(8 << 20)); }),
              HasSubstr("labels takes 0.0 GiB of memory"));
  EXPECT_THAT(error_of([&] { IdxKind::open(options, MemoryBudget(11 << 20)); }), HasSubstr("labels is too short"));
}

TEST_F(IdxDamage, AnUnpackedSizeIsBoundedByTheHeader) {
  Bytes images = images_;
  images.resize(std::size_t{64} << 20);
  EXPECT_THAT(error(gzipped(images), labels_), HasSubstr("too long"));
}

TEST_F(IdxDamage, EveryTruncationIsRefused) {
  for (const Bytes& whole : {images_, gzipped(images_)}) {
    for (std::size_t length = 0; length < whole.size(); ++length) {
      EXPECT_NE(error({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}, labels_), "no error")
          << length;
    }
  }
}

TEST_F(IdxDamage, EveryFlippedBitOfAGzippedFileIsRefusedOrHarmless) {
  const Bytes whole = gzipped(images_);
  const std::vector<float> expected =
      sample(*IdxKind::open({folder_.write("images", whole), folder_.write("labels", labels_)}), {.index = 3});
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes flipped = whole;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    try {
      const DatasetPtr set = IdxKind::open({folder_.write("images", flipped), folder_.path("labels")});
      EXPECT_EQ(sample(*set, {.index = 3}), expected) << "bit " << bit;  // of the header's time stamp, say
    } catch (const StorageError&) {
    }
  }
}

TEST_F(IdxDamage, NoiseIsRefused) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    Bytes noise(random() % 64);
    for (std::uint8_t& byte : noise) byte = static_cast<std::uint8_t>(random());
    if (noise.size() > 4 && round % 2 == 0) std::copy_n(images_.begin(), 4, noise.begin());
    EXPECT_NE(error(noise, labels_), "no error");
  }
}

}  // namespace
}  // namespace lockstep::data
