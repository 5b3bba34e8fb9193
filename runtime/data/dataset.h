// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/tensor/shape.h"

namespace lockstep::data {

/// Names one drawing of one sample. Augmentation depends on nothing else, so not on ranks, threads or order.
struct SampleKey {
  std::int64_t index = 0;   ///< in the data set
  std::uint64_t epoch = 0;  ///< counted from 0
  std::uint64_t seed = 0;
};

/// What the model should answer for one sample.
struct Target {
  std::int64_t label = 0;   ///< class index
  std::span<float> values;  ///< regression: where the data set writes the target
};

/// Samples of one fixed shape. get() is const and may be called from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  /// Of one sample, channels last.
  virtual Shape sample_shape() const = 0;
  /// Number of classes; 0 for regression.
  virtual std::int64_t classes() const = 0;
  /// Of one regression target; a scalar's shape where there are classes.
  virtual Shape target_shape() const { return {}; }
  /// Writes one sample: sample_shape().numel() floats, and the label or target_shape().numel() values.
  virtual void get(const SampleKey& key, std::span<float> input, Target& target) const = 0;
};

using DatasetPtr = std::shared_ptr<const Dataset>;

/// A data set that changes the samples of another and keeps all else. Changes are made in place.
class Transform : public Dataset {
 public:
  explicit Transform(DatasetPtr base) : base_(std::move(base)) {}
  std::int64_t size() const final { return base_->size(); }
  Shape sample_shape() const final { return base_->sample_shape(); }
  std::int64_t classes() const final { return base_->classes(); }
  Shape target_shape() const final { return base_->target_shape(); }
  void get(const SampleKey& key, std::span<float> input, Target& target) const final {
    base_->get(key, input, target);
    apply(key, input);
  }

 private:
  virtual void apply(const SampleKey& key, std::span<float> input) const = 0;

  DatasetPtr base_;
};

}  // namespace lockstep::data
