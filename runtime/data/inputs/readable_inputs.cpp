// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inputs/readable_inputs.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace lockstep::data {

void ReadableInputs::get(const SampleKey& key, const Sample& sample) const {
  try {
    base()->get(key, sample);
  } catch (const StorageError& error) {
    write_zeros(sample);
    std::ranges::fill(sample.labels, kIgnoredLabel);
    const std::lock_guard lock(mutex_);
    failures_[key.index] = error.what();
  }
}

std::map<std::int64_t, std::string> ReadableInputs::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

}  // namespace lockstep::data
