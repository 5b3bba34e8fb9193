// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "runtime/data/dataset.h"

namespace lockstep::data {

/// (x - mean) / std a channel (the last dimension). One value serves all channels; none means 0 and 1.
class Normalize : public Transform {
 public:
  /// Throws FieldError when the number of values is neither one nor that of the channels.
  static void require_fit(const Shape& sample, std::size_t means, std::size_t stds);
  Normalize(DatasetPtr base, std::vector<float> mean, std::vector<float> std);

 private:
  void apply(const SampleKey& key, std::span<float> input) const override;

  // x * scale + shift, as often as there are channels
  std::vector<float> scale_;
  std::vector<float> shift_;
};

}  // namespace lockstep::data
