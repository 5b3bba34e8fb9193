// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/data/make_dataset.h"

namespace lockstep::init {

/// Mean and standard deviation of training data as they would be normalised: a value a channel, or one for all where
/// there are more than 64.
struct Measured {
  data::NormalizeOptions normalize;
  std::int64_t samples = 0;  ///< that were looked at
  std::int64_t unread = 0;   ///< beside them, samples that cannot be read
};

/// Looks at 512 samples at most, spread evenly over the data. None for tokens. Throws StorageError where no
/// sample can be read, and for one that holds a value that is not finite.
std::optional<Measured> measure(const data::DataOptions& options);

}  // namespace lockstep::init
