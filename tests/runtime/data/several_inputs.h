// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/data/dataset.h"

// Data of several inputs, for tests of whatever takes them.

namespace lockstep::data {

/// Images, each with a table of three numbers and a text of two words; the label counts bright pixels and words.
class ImagesTablesAndTexts final : public Dataset {
 public:
  explicit ImagesTablesAndTexts(std::int64_t size = 17) : size_(size) {}
  std::int64_t size() const override { return size_; }
  Shape sample_shape() const override { return {2, 2, 1}; }
  std::vector<InputSpec> more_inputs() const override { return {{.shape = {3}}, {.shape = {2}, .vocabulary = 7}}; }
  std::int64_t classes() const override { return 3; }
  void get(const SampleKey& key, const Sample& sample) const override {
    const auto number = [&key](std::int64_t i) { return (key.index * 37 + i * 11) % 23; };
    const auto fill = [&number](std::span<float> values, std::int64_t first) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(number(first + static_cast<std::int64_t>(i))) / 10 - 1;
      }
    };
    fill(sample.values, 0);
    fill(sample.more_inputs[0].values, 4);
    for (std::int64_t i = 0; i < 2; ++i) sample.more_inputs[1].tokens[static_cast<std::size_t>(i)] = number(7 + i) % 7;
    sample.labels[0] = (std::ranges::count_if(sample.values, [](float value) { return value > 0; }) +
                        sample.more_inputs[1].tokens[0]) %
                       3;
  }

 private:
  std::int64_t size_;
};

}  // namespace lockstep::data
