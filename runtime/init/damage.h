// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/data/make_dataset.h"

namespace lockstep::init {

/// Samples that cannot be read.
struct Damage {
  std::int64_t count = 0;
  std::vector<std::string> sentences = {};  ///< of the first 20: file, sample, what is wrong; then how many more
};

/// Draws 512 samples at most, spread evenly over the data; where one of them cannot be read, all others, too, on every
/// core. Throws what opening the data set throws.
Damage look_for_damage(const data::DataOptions& options, data::Split split);

}  // namespace lockstep::init
