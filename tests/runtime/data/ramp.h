// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <numeric>

#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {

/// One image [h, w, c] whose elements are 1, 2, 3, ...
class Ramp : public Dataset {
 public:
  explicit Ramp(const Shape& shape) : shape_(shape) {}
  std::int64_t size() const override { return 1 << 20; }
  Shape sample_shape() const override { return shape_; }
  std::int64_t classes() const override { return 2; }
  void get(const SampleKey&, const Sample& sample) const override {
    std::iota(sample.values.begin(), sample.values.end(), 1.0f);
    sample.labels[0] = 1;
  }

 private:
  Shape shape_;
};

}  // namespace lockstep::data
