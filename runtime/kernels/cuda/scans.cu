// SPDX-License-Identifier: Apache-2.0
#include <cfloat>

#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/launch.cuh"
#include "runtime/kernels/geometry/structure_checks.h"
#include "runtime/kernels/scans.h"

namespace lockstep::kernels::cuda {

namespace {

using checks::Middle;

/// a * b, which stays finite where both are: factors are multiplied before the value that they are meant for, which may
/// be 0.
__device__ double finite_product(double a, double b) {
  const double product = a * b;
  return isinf(product) && !isinf(a) && !isinf(b) ? copysign(DBL_MAX, product) : product;
}

/// The map x -> factor * x + term from the value before some neighbours to the value behind them.
struct Affine {
  double factor;
  double term;

  /// The map that applies this one first, then `next`.
  __device__ Affine then(const Affine& next) const {
    return {finite_product(next.factor, factor), next.factor * term + next.term};
  }
};

/// The maps of single elements; where a is null factors are 1, where b is null terms are 0.
template <class T>
struct Elements {
  const T* a;
  const T* b;
  __device__ Affine operator()(std::int64_t at) const {
    return {a != nullptr ? static_cast<double>(widened(a[at])) : 1.0,
            b != nullptr ? static_cast<double>(widened(b[at])) : 0.0};
  }
  /// The value to which the first element's map is applied. Where there are terms, the map keeps its term alone.
  __device__ double before(Affine& first) const {
    if (b == nullptr) return 1;
    first.factor = 0;
    return 0;
  }
};

/// A thread a column, one row after the other.
template <class T>
__global__ void __launch_bounds__(kThreads)
    scan_columns_kernel(Middle extents, Elements<T> elements, bool reverse, T* y) {
  for (std::int64_t column = first(); column < extents.outer * extents.inner; column += step()) {
    const std::int64_t begin = column / extents.inner * extents.n * extents.inner + column % extents.inner;
    double running = 0;
    for (std::int64_t k = 0; k < extents.n; ++k) {
      const std::int64_t at = begin + (reverse ? extents.n - 1 - k : k) * extents.inner;
      Affine map = elements(at);
      if (k == 0) running = elements.before(map);
      running = map.factor * running + map.term;
      y[at] = narrowed<T>(running);
    }
  }
}

/// The maps of the threads of a block up to and with this one, composed in order. All threads of the block.
__device__ Affine compose_block(Affine map) {
  __shared__ Affine of_warp[kThreads / 32];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const Affine before{__shfl_up_sync(~0u, map.factor, distance), __shfl_up_sync(~0u, map.term, distance)};
    if (lane >= distance) map = before.then(map);
  }
  if (lane == 31) of_warp[warp] = map;
  __syncthreads();
  Affine before{1, 0};
  for (unsigned w = 0; w < warp; ++w) before = before.then(of_warp[w]);
  __syncthreads();
  return before.then(map);
}

/// A block a line of neighbours, kThreads of them at a time.
template <class T>
__global__ void __launch_bounds__(kThreads)
    scan_lines_kernel(Middle extents, Elements<T> elements, bool reverse, T* y) {
  __shared__ double carried;
  for (std::int64_t line = blockIdx.x; line < extents.outer; line += gridDim.x) {
    double running = 0;
    for (std::int64_t begin = 0; begin < extents.n; begin += kThreads) {
      const std::int64_t k = begin + threadIdx.x;
      const bool live = k < extents.n;
      const std::int64_t at = line * extents.n + (reverse ? extents.n - 1 - k : k);
      Affine map = live ? elements(at) : Affine{1, 0};
      if (begin == 0) {
        double value = elements.b == nullptr ? 1 : 0;
        if (k == 0) value = elements.before(map);
        running = value;
      }
      map = compose_block(map);
      const double value = map.factor * running + map.term;
      if (live) y[at] = narrowed<T>(value);
      if (threadIdx.x == kThreads - 1) carried = value;
      __syncthreads();
      running = carried;
      __syncthreads();
    }
  }
}

void scan(const Tensor& a, const Tensor& b, bool reverse, const Tensor& y) {
  const Middle extents = checks::scan(a, b, y);
  if (y.numel() == 0) return;
  const Device device = y.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  visit_countable("scan", y.dtype(), [&]<class T>() {
    const Elements<T> elements{a.defined() ? in<T>(a) : nullptr, b.defined() ? in<T>(b) : nullptr};
    if (extents.inner == 1) {
      scan_lines_kernel<<<blocks_for(extents.outer, 1), kThreads, 0, stream>>>(extents, elements, reverse, out<T>(y));
    } else {
      scan_columns_kernel<<<blocks_for(extents.outer * extents.inner), kThreads, 0, stream>>>(extents, elements,
                                                                                              reverse, out<T>(y));
    }
  });
  check_launch("scan");
}

}  // namespace

const Scans kScans{.scan = scan};

}  // namespace lockstep::kernels::cuda
