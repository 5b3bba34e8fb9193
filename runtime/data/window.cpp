// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/window.h"

#include "runtime/data/draw.h"

namespace lockstep::data {

Extents extents_of(const Shape& shape) {
  return {static_cast<std::size_t>(shape[0]), static_cast<std::size_t>(shape[1]), static_cast<std::size_t>(shape[2])};
}

Extents window_begin(const Extents& extents, const Extents& patch, WindowPlace place, const SampleKey& key) {
  const std::array<std::uint32_t, 4> words = draw(key, Augmentation::kPatch);
  Extents from{};
  for (std::size_t d = 0; d < from.size(); ++d) {
    const std::size_t room = extents[d] - patch[d];
    from[d] = place == WindowPlace::kMiddle
                  ? room / 2
                  : static_cast<std::size_t>(below(words[d], static_cast<std::int64_t>(room) + 1));
  }
  return from;
}

}  // namespace lockstep::data
