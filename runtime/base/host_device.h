// SPDX-License-Identifier: Apache-2.0
#pragma once

// LOCKSTEP_HOST_DEVICE: before a function that GPU kernels share with the CPU's code.
#if defined(__CUDACC__)
#define LOCKSTEP_HOST_DEVICE __host__ __device__
#else
#define LOCKSTEP_HOST_DEVICE
#endif
