// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/option_checks.h"
#include "runtime/data/byte_dataset.h"
#include "runtime/data/formats/byte_reader.h"

namespace lockstep::data {

FieldProblems problems_of(const IdxOptions& options) { return problems_in_fields(options); }

namespace {

constexpr std::uint32_t kUnsignedBytes = 0x800;  // the type's byte; the lowest byte is the number of dimensions

/// A file whose header has been read.
struct IdxFile {
  explicit IdxFile(const std::string& path) : reader(path) {}

  std::vector<std::uint8_t> read() {
    std::vector<std::uint8_t> content = reader.read(bytes);
    reader.expect_end();
    return content;
  }

  ByteReader reader;  ///< behind the header
  std::vector<std::int64_t> extents;
  std::uint64_t bytes = 1;  ///< that the header promises
};

std::string hex(std::uint32_t value) { return fmt::format("{:#010x}", value); }

/// An array of unsigned bytes with one of `ranks` dimensions.
IdxFile open_array(const std::string& path, std::initializer_list<std::uint32_t> ranks) {
  IdxFile file(path);
  const std::uint32_t magic = file.reader.read_uint32();
  if (std::ranges::none_of(ranks, [&](std::uint32_t rank) { return magic == (kUnsignedBytes | rank); })) {
    std::string expected;
    for (const std::uint32_t rank : ranks) expected += (expected.empty() ? "" : " or ") + hex(kUnsignedBytes | rank);
    throw StorageError(path + " has the wrong magic number: expected " + expected + ", found " + hex(magic),
                       "Check that images and labels are not swapped and that the file is IDX with unsigned bytes.");
  }
  for (std::uint32_t d = 0; d < (magic & 0xff); ++d) {
    const std::uint32_t extent = file.reader.read_uint32();
    file.extents.push_back(extent);
    if (__builtin_mul_overflow(file.bytes, std::uint64_t{extent}, &file.bytes)) {
      throw StorageError(path + ": the extents in its header overflow");
    }
  }
  return file;
}

std::int64_t highest_class(const std::vector<std::uint8_t>& labels) {
  return labels.empty() ? 1 : std::int64_t{*std::ranges::max_element(labels)} + 1;
}

/// Images and labels that belong together; the pixels are still to be read.
struct Pair {
  IdxFile images;
  std::vector<std::uint8_t> labels;
  Description description;
};

/// Each rank holds the content in memory; a label is a byte of the file, and a number of its description.
Pair open_pair(const IdxOptions& options, MemoryBudget budget) {
  constexpr std::string_view kAdvice = "Save the data as .npy arrays, which are read as they are drawn.";
  require_none(problems_of(options), "idx");
  const auto& [images, labels, classes] = options;
  Pair pair{open_array(images, {3, 4}), {}, {}};
  IdxFile label_file = open_array(labels, {1});
  std::vector<std::int64_t>& extents = pair.images.extents;
  Description& description = pair.description;
  description.samples = label_file.extents[0];
  // Before anything is unpacked: a small gzipped file may promise, and hold, more than the machine has.
  if (extents[0] != description.samples) {
    throw StorageError(
        fmt::format("{} holds {} images, but {} holds {} labels", images, extents[0], labels, description.samples),
        "Check that the two files belong together.");
  }
  budget.take(pair.images.bytes, images, kAdvice);
  budget.take(label_file.bytes * (1 + sizeof(std::int64_t)), labels, kAdvice);
  pair.labels = label_file.read();
  description.labels.assign(pair.labels.begin(), pair.labels.end());
  if (extents.size() == 3) extents.push_back(1);
  description.sample_shape = Shape(std::span<const std::int64_t>(extents).subspan(1));
  if (description.sample_shape.numel() == 0) {
    throw StorageError(images + ": its images have no pixels: " + description.sample_shape.str());
  }
  description.classes = classes == 0 ? highest_class(pair.labels) : classes;
  require_labels(pair.labels, description.classes, labels);
  return pair;
}

}  // namespace

DatasetPtr IdxKind::open(const Options& options, MemoryBudget budget) {
  Pair pair = open_pair(options, budget);
  Description& about = pair.description;
  return std::make_shared<ByteDataset>(pair.images.read(), std::move(pair.labels), about.sample_shape, about.classes,
                                       options.labels);
}

Description IdxKind::describe(const Options& options) {
  Pair pair = open_pair(options, {});
  pair.images.reader.expect_rest(pair.images.bytes);
  return std::move(pair.description);
}

std::int64_t count_idx_classes(const std::string& labels) {
  IdxFile file = open_array(labels, {1});
  MemoryBudget().take(file.bytes, labels);
  return highest_class(file.read());
}

}  // namespace lockstep::data
