// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/content_hash.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Spread, TakesAllOfFew) {
  EXPECT_THAT(spread(0, 4), IsEmpty());
  EXPECT_THAT(spread(1, 4), ElementsAre(0));
  EXPECT_THAT(spread(4, 4), ElementsAre(0, 1, 2, 3));
}

TEST(Spread, TakesTheFirstTheLastAndOneOfEachRange) {
  for (const std::uint64_t count : {65ul, 100ul, 1000ul, 1281167ul, (std::uint64_t{1} << 48) + 7}) {
    const std::vector<std::uint64_t> chosen = spread(count, 64);
    ASSERT_EQ(chosen.size(), 64u);
    EXPECT_EQ(chosen.front(), 0u);
    EXPECT_EQ(chosen.back(), count - 1);
    EXPECT_TRUE(std::ranges::is_sorted(chosen));
    EXPECT_EQ(std::ranges::adjacent_find(chosen), chosen.end());
    for (std::uint64_t i = 0; i < 64; ++i) {
      EXPECT_GE(chosen[i], count / 64 * i);
      EXPECT_LT(chosen[i], count / 64 * (i + 1) + 64);
    }
  }
}

TEST(Spread, HasNoPeriod) {
  const std::vector<std::uint64_t> chosen = spread(64'000, 64);
  std::vector<std::uint64_t> places;
  for (const std::uint64_t place : chosen) places.push_back(place % 1000 / 100);
  std::ranges::sort(places);
  EXPECT_EQ(std::ranges::unique(places).begin() - places.begin(), 10);
}

/// Parts whose byte at a place among all is the place modulo 251, but for one that is changed.
struct Source {
  std::vector<std::uint64_t> bytes;
  std::uint64_t changed = UINT64_MAX;
  std::uint64_t unreadable = UINT64_MAX;  ///< the part that is
  std::uint64_t read = 0;

  std::string hash() {
    Hash128 hash;
    add_parts({bytes,
               [this](std::size_t part, std::uint64_t offset, std::span<std::byte> out) {
                 EXPECT_LE(offset + out.size(), bytes[part]);
                 if (part == unreadable) throw StorageError("broken");
                 for (std::size_t before = 0; before < part; ++before) offset += bytes[before];
                 read += out.size();
                 for (std::byte& value : out) {
                   value = static_cast<std::byte>(offset % 251 + (offset == changed ? 1 : 0));
                   ++offset;
                 }
               }},
              hash);
    return hash.hex();
  }
};

TEST(ContentHash, OfLittleContentReadsAllOfIt) {
  Source source{.bytes = {1000, 0, 3'000'000, 1}};
  const std::string hash = source.hash();
  EXPECT_EQ(source.read, 3'001'001u);
  EXPECT_EQ(source.hash(), hash);
  for (const std::uint64_t place : {0, 999, 1000, 2'000'000, 3'000'999, 3'001'000}) {
    source.changed = place;
    EXPECT_NE(source.hash(), hash) << place;
  }
}

TEST(ContentHash, OfMuchContentReadsBlocksAtBothEndsAndBetween) {
  // 4 MiB are read of each.
  for (const std::vector<std::uint64_t>& bytes :
       {std::vector<std::uint64_t>{kMostHashedBytes + 1}, std::vector<std::uint64_t>(3000, 100'000),
        std::vector<std::uint64_t>{7, kMostHashedBytes, 0, 9}}) {
    Source source{.bytes = bytes};
    const std::string hash = source.hash();
    EXPECT_LE(source.read, 64u << 16);
    EXPECT_GT(source.read, 63u << 16);
    std::uint64_t total = 0;
    for (const std::uint64_t size : bytes) total += size;
    for (const std::uint64_t place : {std::uint64_t{0}, std::uint64_t{65535}, total - 1}) {
      source.changed = place;
      EXPECT_NE(source.hash(), hash) << place;
    }
  }
}

// What was moved from one part to the next is other content.
TEST(ContentHash, KnowsTheSizesOfParts) {
  EXPECT_NE((Source{.bytes = {3, 5}}.hash()), (Source{.bytes = {5, 3}}.hash()));
  EXPECT_NE((Source{.bytes = {kMostHashedBytes, 5}}.hash()), (Source{.bytes = {kMostHashedBytes + 1, 4}}.hash()));
}

TEST(ContentHash, OfWhatCannotBeReadIsAnotherOne) {
  Source source{.bytes = {100, 100, 100}};
  const std::string whole = source.hash();
  source.unreadable = 1;
  const std::string broken = source.hash();
  EXPECT_NE(broken, whole);
  EXPECT_EQ(source.hash(), broken);
  source.unreadable = 2;
  EXPECT_NE(source.hash(), broken);
}

TEST(ContentHash, OfAFileIsThatOfItsCopy) {
  const TemporaryFolder folder;
  const auto hash = [](const std::string& path, std::uint64_t most) {
    Hash128 of_file;
    add_file(path, most, of_file);
    return of_file.hex();
  };
  const std::string a = folder.write_text("a", "0123456789"), b = folder.write_text("b", "0123456789");
  EXPECT_EQ(hash(a, 100), hash(b, 100));
  EXPECT_EQ(hash(a, 4), hash(folder.write_text("c", "0123456 89"), 4)) << "of the same size, and read no further";
  EXPECT_NE(hash(a, 4), hash(folder.write_text("d", "0123456"), 4));
  EXPECT_NE(hash(a, 4), hash(folder.path("none"), 4));
}

}  // namespace
}  // namespace lockstep::data
