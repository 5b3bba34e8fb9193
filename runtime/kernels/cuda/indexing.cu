// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/launch.cuh"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/geometry/structure_checks.h"
#include "runtime/kernels/geometry/visit_element.h"
#include "runtime/kernels/indexing.h"

namespace lockstep::kernels::cuda {

namespace {

using checks::Picking;

/// An index outside x gives all bits set: NaN of every floating dtype, -1 of the integers.
template <class T>
__global__ void __launch_bounds__(kThreads)
    gather_kernel(Picking pick, const T* x, const std::int64_t* indices, T* out) {
  const std::int64_t n = pick.outer * pick.m * pick.inner;
  for (std::int64_t at = first(); at < n; at += step()) {
    const std::int64_t row = at / pick.inner;
    const std::int64_t index = indices[pick.own_indices ? at : row % pick.m];
    const bool there = index >= 0 && index < pick.n;
    out[at] = there ? x[(row / pick.m * pick.n + index) * pick.inner + at % pick.inner] : static_cast<T>(~T{0});
  }
}

void gather(const Tensor& x, const Tensor& indices, const Tensor& target) {
  const Picking pick = checks::picking("gather", x, indices, target);
  if (target.numel() == 0) return;
  const Device device = target.device();
  const gpu::DeviceGuard guard(device);
  visit_element(size_of(x.dtype()), [&]<class T>(T) {
    gather_kernel<<<blocks_for(target.numel()), kThreads, 0, gpu::current(device)>>>(
        pick, in<T>(x), in<std::int64_t>(indices), out<T>(target));
  });
  check_launch("gather");
}

/// The summands of a scatter: `parts` rows of `width` neighbours, each for a place below `places`; `outer` times, with
/// the same places.
struct Scatter {
  std::int64_t outer, parts, places, width;

  explicit Scatter(const Picking& pick)
      : outer(pick.own_indices ? 1 : pick.outer),
        parts(pick.own_indices ? pick.outer * pick.m * pick.inner : pick.m),
        places(pick.own_indices ? pick.outer * pick.n * pick.inner : pick.n),
        width(pick.own_indices ? 1 : pick.inner) {}
};

/// The place of each part, `places` where it has none, and its number.
__global__ void __launch_bounds__(kThreads) places_kernel(Picking pick, Scatter scatter, const std::int64_t* indices,
                                                          std::int64_t* places, std::int64_t* parts) {
  for (std::int64_t part = first(); part < scatter.parts; part += step()) {
    const std::int64_t index = indices[part];
    const bool there = index >= 0 && index < pick.n;
    const std::int64_t place =
        pick.own_indices ? (part / pick.inner / pick.m * pick.n + index) * pick.inner + part % pick.inner : index;
    places[part] = there ? place : scatter.places;
    parts[part] = part;
  }
}

/// Sorted by place, parts of one place lie side by side in their order. The thread at the first of them adds them up.
template <class T>
__global__ void __launch_bounds__(kThreads)
    add_kernel(Scatter scatter, const std::int64_t* places, const std::int64_t* parts, const T* x, T* out) {
  const std::int64_t n = scatter.parts * scatter.outer * scatter.width;
  for (std::int64_t item = first(); item < n; item += step()) {
    const std::int64_t column = item % scatter.width;
    const std::int64_t o = item / scatter.width % scatter.outer;
    std::int64_t at = item / scatter.width / scatter.outer;
    const std::int64_t place = places[at];
    if (place >= scatter.places || (at > 0 && places[at - 1] == place)) continue;
    float sum = 0;
    for (; at < scatter.parts && places[at] == place; ++at) {
      sum += to_float(x[(o * scatter.parts + parts[at]) * scatter.width + column]);
    }
    out[(o * scatter.places + place) * scatter.width + column] = from_float<T>(sum);
  }
}

void scatter_add(const Tensor& x, const Tensor& indices, const Tensor& target) {
  const Picking pick = checks::picking("scatter_add", target, indices, x);
  kElementwise.fill(target, 0);
  if (x.numel() == 0) return;
  const Scatter scatter(pick);
  const Device device = target.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const auto numbers = [&] { return Tensor::empty({scatter.parts}, DType::kInt64, device); };
  const Tensor places = numbers(), parts = numbers(), sorted = numbers(), order = numbers();
  places_kernel<<<blocks_for(scatter.parts), kThreads, 0, stream>>>(
      pick, scatter, in<std::int64_t>(indices), out<std::int64_t>(places), out<std::int64_t>(parts));
  check_launch("scatter_add");
  const int bits = std::bit_width(static_cast<std::uint64_t>(scatter.places));
  // The first call, without memory, gives the bytes that the sort needs. The sort is stable.
  std::size_t bytes = 0;
  const auto sort = [&](void* memory) {
    gpu::check(cub::DeviceRadixSort::SortPairs(memory, bytes, in<std::int64_t>(places), out<std::int64_t>(sorted),
                                               in<std::int64_t>(parts), out<std::int64_t>(order), scatter.parts, 0,
                                               bits, stream),
               "scatter_add");
  };
  sort(nullptr);
  const Tensor memory =
      Tensor::empty({static_cast<std::int64_t>(std::max<std::size_t>(bytes, 1))}, DType::kUInt8, device);
  sort(memory.data());
  visit_floating("scatter_add", x.dtype(), [&]<class T>() {
    add_kernel<<<blocks_for(x.numel()), kThreads, 0, stream>>>(scatter, in<std::int64_t>(sorted),
                                                               in<std::int64_t>(order), in<T>(x), out<T>(target));
  });
  check_launch("scatter_add");
}

}  // namespace

const Indexing kIndexing{.gather = gather, .scatter_add = scatter_add};

}  // namespace lockstep::kernels::cuda
