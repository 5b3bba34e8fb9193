// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/median.h"

#include <algorithm>
#include <cstddef>

namespace lockstep::train {

double median(std::vector<float> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return static_cast<double>(*middle);
}

}  // namespace lockstep::train
