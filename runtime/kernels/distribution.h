// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::kernels {

/// The distribution of random numbers. `first` and `second` are its parameters.
enum class Distribution : std::uint8_t {
  kUniform,  ///< first + (second - first) * u, u in [0, 1) with 24 bits
  kNormal,   ///< of mean `first` and standard deviation `second`
};

}  // namespace lockstep::kernels
