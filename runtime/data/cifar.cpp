// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/cifar.h"

#include <algorithm>
#include <filesystem>

#include "runtime/data/byte_dataset.h"
#include "runtime/data/byte_reader.h"
#include "runtime/tensor/error.h"

namespace lockstep::data {

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

std::vector<std::uint8_t> read_records(const std::string& file, std::size_t record) {
  std::error_code failure;
  const std::uintmax_t bytes = std::filesystem::file_size(file, failure);
  if (failure) throw StorageError("cannot read " + file + ": " + failure.message());
  if (bytes == 0 || bytes % record != 0) {
    throw StorageError(
        file + ": expected a multiple of " + std::to_string(record) + " bytes, found " + std::to_string(bytes),
        "Check that the file is whole, that it is the binary version, and the kind of labels.");
  }
  ByteReader reader(file);
  return reader.read(bytes);
}

}  // namespace

DatasetPtr open_cifar(const std::vector<std::string>& files, CifarLabels labels) {
  const Layout layout = layout_of(labels);
  const std::size_t record = layout.label_bytes + kImage;
  std::vector<std::uint8_t> images;
  std::vector<std::uint8_t> classes;
  std::string names;
  for (const std::string& file : files) {
    const std::vector<std::uint8_t> bytes = read_records(file, record);
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
    if (!names.empty()) names += ", ";
    names += file;
  }
  return std::make_shared<ByteDataset>(std::move(images), std::move(classes), Shape{32, 32, 3}, layout.classes, names);
}

}  // namespace lockstep::data
