// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::kernels {

/// Calls f(T{}) with the unsigned integer that is as large as an element, for what moves elements and does not compute.
template <class F>
void visit_element(std::size_t bytes, F&& f) {
  if (bytes == 1) return f(std::uint8_t{});
  if (bytes == 2) return f(std::uint16_t{});
  if (bytes == 4) return f(std::uint32_t{});
  f(std::uint64_t{});
}

}  // namespace lockstep::kernels
