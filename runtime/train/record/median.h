// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace lockstep::train {

/// The upper one of an even number of values; 0 without values.
double median(std::vector<float> values);

}  // namespace lockstep::train
