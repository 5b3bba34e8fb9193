// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/data/dataset.h"

namespace lockstep::data {

/// Throws StorageError when there is no label, or one that is not below `classes`. `from` names where they came from.
void require_labels(std::span<const std::uint8_t> labels, std::int64_t classes, const std::string& from);

/// Images of bytes, held in memory as [N, H, W, C], and a byte of label each. Samples are the bytes / 255.
class ByteDataset : public Dataset {
 public:
  /// Throws as require_labels() does.
  ByteDataset(std::vector<std::uint8_t> images, std::vector<std::uint8_t> labels, const Shape& sample_shape,
              std::int64_t classes, const std::string& labels_from);

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  Shape sample_shape() const override { return sample_shape_; }
  std::int64_t classes() const override { return classes_; }
  TargetSummary target_summary() const override;
  void get(const SampleKey& key, const Sample& sample) const override;
  void add_to_digest(DataHashes& hashes) const override;

 private:
  std::vector<std::uint8_t> images_;
  std::vector<std::uint8_t> labels_;
  Shape sample_shape_;
  std::int64_t classes_;
};

}  // namespace lockstep::data
