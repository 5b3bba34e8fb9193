// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "runtime/data/dataset.h"

namespace lockstep::data {

/// Samples to predict of which some cannot be read: these are zeros, and failures() says why.
class ReadableInputs : public Dataset {
 public:
  explicit ReadableInputs(DatasetPtr base) : base_(std::move(base)) {}

  std::int64_t size() const override { return base_->size(); }
  Shape sample_shape() const override { return base_->sample_shape(); }
  std::int64_t vocabulary() const override { return base_->vocabulary(); }
  std::int64_t classes() const override { return base_->classes(); }
  Shape target_shape() const override { return base_->target_shape(); }
  void get(const SampleKey& key, const Sample& sample) const override;

  /// By the sample's index, of those that were drawn by now.
  std::map<std::int64_t, std::string> failures() const;

 private:
  DatasetPtr base_;
  mutable std::mutex mutex_;
  mutable std::map<std::int64_t, std::string> failures_;
};

}  // namespace lockstep::data
