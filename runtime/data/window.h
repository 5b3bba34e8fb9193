// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "runtime/data/dataset.h"

namespace lockstep::data {

/// The extents of a volume's three dimensions in space.
using Extents = std::array<std::size_t, 3>;

/// The extents of the first three dimensions.
Extents extents_of(const Shape& shape);

/// Where a window lies in a volume.
enum class WindowPlace { kRandom, kMiddle };

/// The first voxel of a window of `patch` in a volume of `extents`, which is no smaller. What is drawn depends on the
/// sample's key alone.
Extents window_begin(const Extents& extents, const Extents& patch, WindowPlace place, const SampleKey& key);

/// Copies the window at `from`; a voxel has `numbers` elements.
template <class T>
void copy_window(std::span<const T> volume, const Extents& extents, const Extents& from, const Extents& patch,
                 std::size_t numbers, std::span<T> out) {
  const std::size_t row = patch[2] * numbers;
  for (std::size_t z = 0; z < patch[0]; ++z) {
    for (std::size_t y = 0; y < patch[1]; ++y) {
      const std::size_t begin = ((from[0] + z) * extents[1] + from[1] + y) * extents[2] + from[2];
      std::ranges::copy(volume.subspan(begin * numbers, row), out.begin());
      out = out.subspan(row);
    }
  }
}

}  // namespace lockstep::data
