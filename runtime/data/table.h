// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/description.h"

namespace lockstep::data {

/// Rows of numbers that are held in memory: a sample is a row [F], with tokens [1] beside it where there are some, a
/// target the row's class or number [1]. Who derives from it fills the rows in its constructor.
class TableDataset : public Dataset {
 public:
  /// With all labels.
  Description describe() const;
  /// In the order of the classes; none where the targets are numbers of classes, or numbers.
  const std::vector<std::string>& class_names() const { return rows_.class_names; }

  std::int64_t size() const override { return rows_.count; }
  Shape sample_shape() const override { return {rows_.columns}; }
  std::vector<InputSpec> more_inputs() const override { return rows_.more_inputs; }
  std::int64_t classes() const override { return rows_.classes; }
  Shape target_shape() const override { return rows_.classes > 0 ? Shape{} : Shape{1}; }
  bool weighted() const override { return !rows_.weights.empty(); }
  TargetSummary target_summary() const override;
  void get(const SampleKey& key, const Sample& sample) const override;
  void add_to_digest(DataHashes& hashes) const override;
  void add_to_preparation(Preparation& preparation) const override;
  /// Adds the hash of its row where there is one, else its numbers up to the last that is not 0: sparse rows grow by
  /// zeros where another sample has one more feature.
  void add_content(std::int64_t index, Hash128& hash) const override;

 protected:
  struct Rows {
    std::int64_t count = 0;
    std::int64_t columns = 0;
    std::int64_t classes = 0;
    std::vector<std::string> class_names;
    std::vector<float> features;         ///< [count, columns]
    std::vector<InputSpec> more_inputs;  ///< tokens [1] each
    std::vector<std::int64_t> tokens;    ///< [count, more_inputs]
    std::vector<float> numbers;          ///< [count], without classes
    std::vector<std::int64_t> labels;
    std::vector<float> weights;           ///< [count]; none where all count alike
    std::vector<std::uint64_t> contents;  ///< [count] hashes, where features are made of more than their own row
  };
  Rows rows_;
};

}  // namespace lockstep::data
