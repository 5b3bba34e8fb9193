// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/cuda/stream.h"
#include "runtime/tensor/half.h"
#include "runtime/tensor/tensor.h"

// The parts that every kernel of this folder shares: dtypes, 16-byte accesses, grids.

namespace lockstep::kernels::cuda {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
/// Enough blocks to fill any device several times over; kernels loop over the rest, so the grid never overflows.
constexpr std::int64_t kMaxBlocks = 132 * 16;

/// Blocks of `threads` for so many items, one a thread and more where there are many: at least one.
inline unsigned blocks_for(std::int64_t items, int threads = kThreads) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((items + threads - 1) / threads, 1, kMaxBlocks));
}

/// Throws the error of the last launch. Called behind every launch.
inline void check_launch(const char* kernel) { gpu::check(cudaGetLastError(), kernel); }

// The hardware's conversions: those of half.h in one instruction. Both round to nearest even.
__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(Half x) { return __half2float(__ushort_as_half(x.bits)); }
__device__ inline float to_float(BFloat16 x) { return __bfloat162float(__ushort_as_bfloat16(x.bits)); }

template <class T>
__device__ T from_float(float x) {
  if constexpr (std::is_same_v<T, Half>) {
    Half half;
    half.bits = __half_as_ushort(__float2half_rn(x));
    return half;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    BFloat16 bfloat;
    bfloat.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
    return bfloat;
  } else {
    return x;
  }
}

// The dtype of summands: float32 for float32 and narrower dtypes, float64 for float64.
__device__ inline double widened(double x) { return x; }
template <class T>
__device__ float widened(T x) {
  return to_float(x);
}
template <class T>
using Widened = std::conditional_t<std::is_same_v<T, double>, double, float>;
/// A sum, rounded once.
template <class T>
__device__ T narrowed(double x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return from_float<T>(static_cast<float>(x));
  }
}

/// 16 bytes of T, moved in one access.
template <class T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T values[kSize];
};

/// Whether every one of these addresses takes 16-byte accesses. Views may begin anywhere.
template <class... Pointers>
bool aligned(const Pointers*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

/// Calls f.template operator()<T>() with the element type of a floating dtype of this backend.
template <class F>
void visit_floating(std::string_view operation, DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat32:
      return f.template operator()<float>();
    case DType::kFloat16:
      return f.template operator()<Half>();
    case DType::kBFloat16:
      return f.template operator()<BFloat16>();
    default:
      throw ShapeError(std::string(operation) + ": a GPU computes float32, float16 and bfloat16, found " +
                       std::string(name_of(dtype)));
  }
}

/// visit_floating() with float64 too, for operations that count integers: float64 holds those up to 2^53 exactly.
template <class F>
void visit_countable(std::string_view operation, DType dtype, F&& f) {
  if (dtype == DType::kFloat64) return f.template operator()<double>();
  visit_floating(operation, dtype, std::forward<F>(f));
}

template <class T>
const T* in(const Tensor& tensor) {
  return static_cast<const T*>(tensor.data());
}
template <class T>
T* out(const Tensor& tensor) {
  return static_cast<T*>(tensor.data());
}

/// The thread's number in the grid, and how many threads that has: for (i = first(); i < n; i += step()).
__device__ inline std::int64_t first() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline std::int64_t step() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

}  // namespace lockstep::kernels::cuda
