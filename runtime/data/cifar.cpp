// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/cifar.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "runtime/base/error.h"
#include "runtime/base/files/stored_file.h"
#include "runtime/base/option_checks.h"
#include "runtime/data/byte_dataset.h"
#include "runtime/data/formats/byte_reader.h"

namespace lockstep::data {

FieldProblems problems_of(const CifarOptions& options) { return problems_in_fields(options); }

namespace {

constexpr std::size_t kPlane = 32 * 32;
constexpr std::size_t kChannels = 3;
constexpr std::size_t kImage = kPlane * kChannels;

/// How a record begins: its label bytes, which of them counts, and how many classes that one has.
struct Layout {
  std::size_t label_bytes;
  std::size_t label_at;
  std::int64_t classes;
};

Layout layout_of(CifarLabels labels) {
  switch (labels) {
    case CifarLabels::kCifar10:
      return {1, 0, 10};
    case CifarLabels::kCifar100Coarse:
      return {2, 0, 20};
    case CifarLabels::kCifar100Fine:
      return {2, 1, 100};
  }
  throw UsageError("unknown kind of CIFAR labels");
}

std::uintmax_t size_of_records(const std::string& file, std::size_t record) {
  std::error_code failure;
  const std::uintmax_t bytes = std::filesystem::file_size(file, failure);
  if (failure) throw StorageError("cannot read " + file + ": " + failure.message());
  if (bytes == 0 || bytes % record != 0) {
    throw StorageError(fmt::format("{}: expected a multiple of {} bytes, found {}", file, record, bytes),
                       "Check that the file is whole, that it is the binary version, and the kind of labels.");
  }
  return bytes;
}

/// The byte at `label_at` of each record.
void append_labels(const std::string& file, const Layout& layout, std::vector<std::uint8_t>& labels) {
  const std::size_t record = layout.label_bytes + kImage;
  const std::uintmax_t bytes = size_of_records(file, record);
  const StoredFile content(file);
  for (std::uintmax_t at = layout.label_at; at < bytes; at += record) {
    std::uint8_t label = 0;
    content.read(at, std::as_writable_bytes(std::span(&label, 1)));
    labels.push_back(label);
  }
}

}  // namespace

DatasetPtr CifarKind::open(const Options& options) {
  require_none(problems_of(options), "cifar");
  const Layout layout = layout_of(options.labels);
  const std::size_t record = layout.label_bytes + kImage;
  std::vector<std::uint8_t> images;
  std::vector<std::uint8_t> classes;
  for (const std::string& file : options.files) {
    const std::vector<std::uint8_t> bytes = ByteReader(file).read(size_of_records(file, record));
    std::size_t out = images.size();
    images.resize(out + bytes.size() / record * kImage);
    for (std::size_t at = 0; at < bytes.size(); at += record) {
      classes.push_back(bytes[at + layout.label_at]);
      const std::uint8_t* planes = &bytes[at + layout.label_bytes];
      for (std::size_t pixel = 0; pixel < kPlane; ++pixel) {
        for (std::size_t channel = 0; channel < kChannels; ++channel) {
          images[out++] = planes[channel * kPlane + pixel];
        }
      }
    }
  }
  return std::make_shared<ByteDataset>(std::move(images), std::move(classes), Shape{32, 32, 3}, layout.classes,
                                       fmt::format("{}", fmt::join(options.files, ", ")));
}

Description CifarKind::describe(const Options& options) {
  require_none(problems_of(options), "cifar");
  const Layout layout = layout_of(options.labels);
  Description description{.samples = 0, .sample_shape = {32, 32, 3}, .classes = layout.classes};
  std::vector<std::uint8_t> labels;
  for (const std::string& file : options.files) append_labels(file, layout, labels);
  description.labels.assign(labels.begin(), labels.end());
  description.samples = std::ssize(labels);
  require_labels(labels, layout.classes, fmt::format("{}", fmt::join(options.files, ", ")));
  return description;
}

}  // namespace lockstep::data
