// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::kernels {

/// What random numbers are drawn from, and the meaning of its two parameters.
enum class Distribution : std::uint8_t {
  kUniform,  ///< first + (second - first) * u, u in [0, 1) with 24 bits
  kNormal,   ///< of mean `first` and standard deviation `second`
};

}  // namespace lockstep::kernels
