// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/base/error.h"
#include "tests/support/cuda_on_host/threads.h"

// As much of CUDA's language and runtime as the kernels' sources use, for a compiler of C++.

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __shared__ static thread_local  // a block's: blocks of a host thread come one after the other

#define threadIdx (::lockstep::cuda_on_host::place.thread)
#define blockIdx (::lockstep::cuda_on_host::place.block)
#define blockDim (::lockstep::cuda_on_host::place.block_extent)
#define gridDim (::lockstep::cuda_on_host::place.grid_extent)

inline void __syncthreads() { ::lockstep::cuda_on_host::wait_for_block(); }
inline int __syncthreads_or(int predicate) { return ::lockstep::cuda_on_host::any_of_block(predicate != 0); }
inline void __threadfence() {}

namespace lockstep::cuda_on_host {
inline unsigned lane() {
  return (place.thread.x + place.block_extent.x * (place.thread.y + place.block_extent.y * place.thread.z)) % kWarp;
}
inline void require_all_lanes(unsigned mask) {
  if (mask != ~0u) throw UsageError("a shuffle of some lanes of a warp");
}
}  // namespace lockstep::cuda_on_host

template <class T>
T __shfl_xor_sync(unsigned mask_of_lanes, T value, int mask, int width = 32) {
  ::lockstep::cuda_on_host::require_all_lanes(mask_of_lanes);
  const unsigned lane = ::lockstep::cuda_on_host::lane();
  const unsigned other = lane ^ static_cast<unsigned>(mask);
  const unsigned end = (lane / static_cast<unsigned>(width) + 1) * static_cast<unsigned>(width);
  return ::lockstep::cuda_on_host::of_lane(value, other < end ? other : lane);
}
template <class T>
T __shfl_down_sync(unsigned mask_of_lanes, T value, unsigned delta, int width = 32) {
  ::lockstep::cuda_on_host::require_all_lanes(mask_of_lanes);
  const unsigned lane = ::lockstep::cuda_on_host::lane();
  const bool there = lane % static_cast<unsigned>(width) + delta < static_cast<unsigned>(width);
  return ::lockstep::cuda_on_host::of_lane(value, there ? lane + delta : lane);
}
template <class T>
T __shfl_up_sync(unsigned mask_of_lanes, T value, unsigned delta, int width = 32) {
  ::lockstep::cuda_on_host::require_all_lanes(mask_of_lanes);
  const unsigned lane = ::lockstep::cuda_on_host::lane();
  return ::lockstep::cuda_on_host::of_lane(value, lane % static_cast<unsigned>(width) >= delta ? lane - delta : lane);
}

inline void __syncwarp() { ::lockstep::cuda_on_host::of_lane(0, 0); }

inline float2 make_float2(float x, float y) { return {x, y}; }

inline unsigned atomicInc(unsigned* address, unsigned last) {
  const unsigned old = *address;
  *address = old >= last ? 0 : old + 1;
  return old;
}
template <class T>
T atomicMin(T* address, T value) {
  const T old = *address;
  if (value < old) *address = value;
  return old;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}
template <class A, class B>
std::common_type_t<A, B> min(A a, B b) {
  return std::min<std::common_type_t<A, B>>(a, b);
}
template <class A, class B>
std::common_type_t<A, B> max(A a, B b) {
  return std::max<std::common_type_t<A, B>>(a, b);
}
using std::isfinite;
using std::isinf;
using std::isnan;
inline float __fmul_rn(float a, float b) {
  volatile float product = a * b;  // is not merged with a sum
  return product;
}
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
enum cudaError_t { cudaSuccess, cudaErrorUnknown };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeRelaxed };

struct cudaFuncAttributes {
  int ptxVersion;
};
template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel*) {
  attributes->ptxVersion = 90;  // as the emulated GPU's compute capability
  return cudaSuccess;
}

inline cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);
