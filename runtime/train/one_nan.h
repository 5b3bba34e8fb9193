// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

namespace lockstep::train {

/// `value`, and for each NaN the one without a sign: what computed a NaN decides whether it prints as "-nan".
inline double one_nan(double value) { return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value; }

}  // namespace lockstep::train
