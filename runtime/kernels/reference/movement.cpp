// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/movement.h"

#include <cstring>

#include "runtime/kernels/geometry/structure_checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::reference {

namespace {

void copy_strided(const Tensor& in, const Walk& from, const Shape& extents, const Tensor& out, const Walk& to) {
  checks::copy_strided(in, from, extents, out, to);
  const std::size_t bytes = size_of(in.dtype());
  for (std::int64_t i = 0; i < extents.numel(); ++i) {
    std::int64_t source = from.offset;
    std::int64_t target = to.offset;
    std::int64_t rest = i;
    for (int d = extents.rank() - 1; d >= 0; --d) {
      const auto at = static_cast<std::size_t>(d);
      source += rest % extents[d] * from.strides[at];
      target += rest % extents[d] * to.strides[at];
      rest /= extents[d];
    }
    std::memcpy(static_cast<std::byte*>(out.data()) + static_cast<std::size_t>(target) * bytes,
                static_cast<const std::byte*>(in.data()) + static_cast<std::size_t>(source) * bytes, bytes);
  }
}

}  // namespace

const Movement kMovement{.copy_strided = copy_strided};

}  // namespace lockstep::kernels::reference
