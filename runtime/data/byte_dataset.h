// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/data/dataset.h"

namespace lockstep::data {

/// Images of bytes, held in memory as [N, H, W, C], and a byte of label each. Samples are the bytes / 255.
class ByteDataset : public Dataset {
 public:
  /// `labels_from` names where the labels came from. Throws StorageError when there is no sample, or a label is not
  /// below `classes`.
  ByteDataset(std::vector<std::uint8_t> images, std::vector<std::uint8_t> labels, const Shape& sample_shape,
              std::int64_t classes, const std::string& labels_from);

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  Shape sample_shape() const override { return sample_shape_; }
  std::int64_t classes() const override { return classes_; }
  void get(const SampleKey& key, std::span<float> input, Target& target) const override;

 private:
  std::vector<std::uint8_t> images_;
  std::vector<std::uint8_t> labels_;
  Shape sample_shape_;
  std::int64_t classes_;
};

}  // namespace lockstep::data
