// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/byte_dataset.h"

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/data/data_digest.h"
#include "runtime/data/formats/content_hash.h"

namespace lockstep::data {

void require_labels(std::span<const std::uint8_t> labels, std::int64_t classes, const std::string& from) {
  if (labels.empty()) throw StorageError(from + ": holds no samples");
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < classes) continue;
    throw StorageError(fmt::format("{}: label {} of sample {} is outside the {} classes", from, labels[i], i, classes),
                       "Check that the file belongs to this data set, or set the number of classes.");
  }
}

ByteDataset::ByteDataset(std::vector<std::uint8_t> images, std::vector<std::uint8_t> labels, const Shape& sample_shape,
                         std::int64_t classes, const std::string& labels_from)
    : images_(std::move(images)), labels_(std::move(labels)), sample_shape_(sample_shape), classes_(classes) {
  require_labels(labels_, classes_, labels_from);
}

TargetSummary ByteDataset::target_summary() const {
  const std::vector<std::int64_t> labels(labels_.begin(), labels_.end());
  return {.common_class = most_common(labels)};
}

void ByteDataset::get(const SampleKey& key, const Sample& sample) const {
  const std::span<float> input = sample.values;
  const auto at = static_cast<std::size_t>(key.index);
  const std::uint8_t* bytes = images_.data() + at * input.size();
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(bytes[i]) * (1.0f / 255.0f);
  sample.labels[0] = labels_[at];
}

void ByteDataset::add_to_digest(DataHashes& hashes) const {
  add_bytes(std::as_bytes(std::span(labels_)), hashes.labels);
  add_bytes(std::as_bytes(std::span(images_)), hashes.content);
}

}  // namespace lockstep::data
