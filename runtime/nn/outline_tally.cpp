// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/outline_tally.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>

#include "runtime/base/byte_size.h"
#include "runtime/tensor/memory_room.h"

namespace lockstep::nn {

void OutlineTally::add_parameter(std::int64_t elements) {
  if (++tensors_ > kMostTensors) throw ModelTooLarge(fmt::format("it has more than {} parameters", kMostTensors));
  // Nor would the system give so much address space.
  static const std::optional<std::size_t> kWhole = whole_memory();
  const double bytes = 4.0 * static_cast<double>(elements);
  if (kWhole && bytes > static_cast<double>(*kWhole)) {
    throw ModelTooLarge("the weights of one of its layers take " + byte_size(bytes));
  }
  if (elements > kMostElements - elements_) {
    throw ModelTooLarge("its weights take more than " + byte_size(4.0 * kMostElements));
  }
  elements_ += elements;
}

void OutlineTally::add_statistics(std::int64_t channels) {
  if (channels > kMostChannels - channels_) {
    throw ModelTooLarge(fmt::format("its batch norms have more than {} channels", kMostChannels));
  }
  channels_ += channels;
}

}  // namespace lockstep::nn
