// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::kernels::cpu {

/// The most threads that an operation of the calling thread runs on: OpenMP's, which OMP_NUM_THREADS sets.
int threads();

}  // namespace lockstep::kernels::cpu
