// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/base/error.h"

namespace lockstep::nn {

/// A model has more of something than any that can be trained, so that looking at it would take memory and time without
/// end.
class ModelTooLarge : public UsageError {
  using UsageError::UsageError;
};

/// Counts the modules' parameters and running statistics while a model is built without values: those of GPT-3 are
/// 1,200 tensors of 2^37 elements, those of a ResNet-152 151,000 channels.
class OutlineTally {
 public:
  static constexpr std::int64_t kMostTensors = std::int64_t{1} << 15;
  static constexpr std::int64_t kMostElements = std::int64_t{1} << 48;
  static constexpr std::int64_t kMostChannels = std::int64_t{1} << 22;  ///< of running statistics, which have values

  /// Throw ModelTooLarge, before anything is made of that size.
  void add_parameter(std::int64_t elements);
  void add_statistics(std::int64_t channels);

 private:
  std::int64_t tensors_ = 0;
  std::int64_t elements_ = 0;
  std::int64_t channels_ = 0;
};

}  // namespace lockstep::nn
