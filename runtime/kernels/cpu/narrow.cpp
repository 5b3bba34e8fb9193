// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/narrow.h"

#include "runtime/kernels/cpu/loops/loops.h"

namespace lockstep::kernels::cpu {

void narrow(std::span<const float> numbers, DType dtype, void* out) {
  loops().convert({numbers.data(), DType::kFloat32}, {out, dtype}, static_cast<std::int64_t>(numbers.size()));
}

}  // namespace lockstep::kernels::cpu
