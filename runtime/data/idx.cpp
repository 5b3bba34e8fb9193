// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/idx.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "runtime/data/byte_dataset.h"
#include "runtime/data/byte_reader.h"
#include "runtime/tensor/error.h"

namespace lockstep::data {

namespace {

constexpr std::uint32_t kUnsignedBytes = 0x800;  // the type's byte; the lowest byte is the number of dimensions

struct IdxArray {
  std::vector<std::int64_t> extents;
  std::vector<std::uint8_t> bytes;
};

std::string hex(std::uint32_t value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%08x", value);
  return text.data();
}

/// An array of unsigned bytes with one of `ranks` dimensions.
IdxArray read_idx(const std::string& path, std::initializer_list<std::uint32_t> ranks) {
  ByteReader reader(path);
  const std::uint32_t magic = reader.read_uint32();
  if (std::ranges::none_of(ranks, [&](std::uint32_t rank) { return magic == (kUnsignedBytes | rank); })) {
    std::string expected;
    for (const std::uint32_t rank : ranks) expected += (expected.empty() ? "" : " or ") + hex(kUnsignedBytes | rank);
    throw StorageError(path + " has the wrong magic number: expected " + expected + ", found " + hex(magic),
                       "Check that images and labels are not swapped and that the file is IDX with unsigned bytes.");
  }
  IdxArray array;
  std::uint64_t count = 1;
  for (std::uint32_t d = 0; d < (magic & 0xff); ++d) {
    const std::uint32_t extent = reader.read_uint32();
    array.extents.push_back(extent);
    if (__builtin_mul_overflow(count, std::uint64_t{extent}, &count)) {
      throw StorageError(path + ": the extents in its header overflow");
    }
  }
  array.bytes = reader.read(count);
  reader.expect_end();
  return array;
}

std::int64_t highest_class(const std::vector<std::uint8_t>& labels) {
  return labels.empty() ? 1 : std::int64_t{*std::ranges::max_element(labels)} + 1;
}

}  // namespace

DatasetPtr open_idx(const std::string& images, const std::string& labels, std::int64_t classes) {
  IdxArray pixels = read_idx(images, {3, 4});
  IdxArray classified = read_idx(labels, {1});
  if (pixels.extents[0] != classified.extents[0]) {
    throw StorageError(images + " holds " + std::to_string(pixels.extents[0]) + " images, but " + labels + " holds " +
                           std::to_string(classified.extents[0]) + " labels",
                       "Check that the two files belong together.");
  }
  if (pixels.extents.size() == 3) pixels.extents.push_back(1);
  const Shape sample(std::span<const std::int64_t>(pixels.extents).subspan(1));
  if (sample.numel() == 0) throw StorageError(images + ": its images have no pixels: " + sample.str());
  if (classes == 0) classes = highest_class(classified.bytes);
  return std::make_shared<ByteDataset>(std::move(pixels.bytes), std::move(classified.bytes), sample, classes, labels);
}

std::int64_t count_idx_classes(const std::string& labels) { return highest_class(read_idx(labels, {1}).bytes); }

}  // namespace lockstep::data
