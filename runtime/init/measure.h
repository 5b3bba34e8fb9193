// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/data/make_dataset.h"

namespace lockstep::init {

/// Mean and standard deviation of training data as they would be normalised: a value a channel, or one for all where
/// there are more than 64.
struct Measured {
  data::NormalizeOptions normalize;  ///< none where the data set standardises its numbers itself
  data::NormalizeOptions target;     ///< of targets of numbers; none of classes, and of targets a position
  std::int64_t samples = 0;          ///< that were looked at
  std::int64_t unread = 0;           ///< beside them, samples that cannot be read
};

/// Looks at 512 samples at most, spread evenly over the data; of tables at 65536. None for tokens. Throws StorageError
/// where no sample can be read, and for one that holds a value that is not finite.
std::optional<Measured> measure(const data::DataOptions& options);

}  // namespace lockstep::init
