// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::kernels {

/// The term that a sum adds for an element x: x, |x| or x^2.
enum class Term : std::uint8_t { kValue, kAbsolute, kSquare };

enum class Extreme : std::uint8_t { kLargest, kSmallest };

}  // namespace lockstep::kernels
