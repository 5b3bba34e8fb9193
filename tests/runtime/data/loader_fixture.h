// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <thread>
#include <vector>

#include "runtime/data/loader.h"
#include "tests/runtime/data/sample_files.h"

// What tests of loaders draw from.

namespace lockstep::data {

inline std::vector<std::int64_t> labels(const Batch& batch) {
  const std::span<const std::int64_t> values = batch.target.as<std::int64_t>();
  return {values.begin(), values.end()};
}

/// Shows the key that it was drawn with, at a pace of its own each.
class Keyed : public Dataset {
 public:
  std::int64_t size() const override { return 41; }
  Shape sample_shape() const override { return {3}; }
  std::int64_t classes() const override { return 0; }
  Shape target_shape() const override { return {2}; }
  void get(const SampleKey& key, const Sample& sample) const override {
    for (std::int64_t i = 0; i < key.index % 5; ++i) std::this_thread::yield();
    const auto index = static_cast<float>(key.index);
    std::ranges::copy(std::array{index, static_cast<float>(key.epoch), static_cast<float>(key.seed)},
                      sample.values.begin());
    std::ranges::fill(sample.target, -index);
  }
};

}  // namespace lockstep::data
