// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::kernels::cuda {

/// Whether float32 products may round their operands to TF32's 10 bits of mantissa: what set_tf32() said, unless the
/// environment variable NVIDIA_TF32_OVERRIDE is 0 or 1, which decides for every library of NVIDIA's.
bool tf32();

}  // namespace lockstep::kernels::cuda
