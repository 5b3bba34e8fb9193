// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "runtime/data/dataset.h"

namespace lockstep::data {

/// Samples to predict of which some cannot be read: these are zeros, with labels that count for nothing, and failures()
/// says why.
class ReadableInputs : public DerivedDataset {
 public:
  using DerivedDataset::DerivedDataset;

  void get(const SampleKey& key, const Sample& sample) const override;

  /// By the sample's index, of those that were drawn by now.
  std::map<std::int64_t, std::string> failures() const;

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::int64_t, std::string> failures_;
};

}  // namespace lockstep::data
