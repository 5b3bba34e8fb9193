// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/launch.cuh"
#include "runtime/kernels/cuda/radix_sort.cuh"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/functors/sort_key.h"
#include "runtime/kernels/functors/visit_dtype.h"
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

/// The elements that a scatter adds or writes: `parts` rows of `width` neighbours, each for a place below `places`;
/// `outer` times, with the same places.
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

/// As add_kernel, but the thread at the last part of a place writes it.
template <class T>
__global__ void __launch_bounds__(kThreads)
    write_kernel(Scatter scatter, const std::int64_t* places, const std::int64_t* parts, const T* x, T* out) {
  const std::int64_t n = scatter.parts * scatter.outer * scatter.width;
  for (std::int64_t item = first(); item < n; item += step()) {
    const std::int64_t column = item % scatter.width;
    const std::int64_t o = item / scatter.width % scatter.outer;
    const std::int64_t at = item / scatter.width / scatter.outer;
    const std::int64_t place = places[at];
    if (place >= scatter.places || (at + 1 < scatter.parts && places[at + 1] == place)) continue;
    out[(o * scatter.places + place) * scatter.width + column] =
        x[(o * scatter.parts + parts[at]) * scatter.width + column];
  }
}

Sorted parts_by_place(const char* operation, const Picking& pick, const Scatter& scatter, const Tensor& indices) {
  const Device device = indices.device();
  const Tensor places = Tensor::empty({scatter.parts}, DType::kInt64, device),
               parts = Tensor::empty({scatter.parts}, DType::kInt64, device);
  places_kernel<<<blocks_for(scatter.parts), kThreads, 0, gpu::current(device)>>>(
      pick, scatter, in<std::int64_t>(indices), out<std::int64_t>(places), out<std::int64_t>(parts));
  check_launch(operation);
  return radix_sort<std::int64_t>(operation, places, parts, std::bit_width(static_cast<std::uint64_t>(scatter.places)));
}

void scatter_add(const Tensor& x, const Tensor& indices, const Tensor& target) {
  const Picking pick = checks::picking("scatter_add", target, indices, x);
  kElementwise.fill(target, 0);
  if (x.numel() == 0) return;
  const Scatter scatter(pick);
  const gpu::DeviceGuard guard(target.device());
  const Sorted sorted = parts_by_place("scatter_add", pick, scatter, indices);
  visit_floating("scatter_add", x.dtype(), [&]<class T>() {
    add_kernel<<<blocks_for(x.numel()), kThreads, 0, gpu::current(target.device())>>>(
        scatter, in<std::int64_t>(sorted.keys), in<std::int64_t>(sorted.values), in<T>(x), out<T>(target));
  });
  check_launch("scatter_add");
}

void scatter(const Tensor& x, const Tensor& indices, const Tensor& target) {
  const Picking pick = checks::picking("scatter", target, indices, x);
  if (x.numel() == 0) return;
  const Scatter scatter(pick);
  const gpu::DeviceGuard guard(target.device());
  const Sorted sorted = parts_by_place("scatter", pick, scatter, indices);
  visit_element(size_of(x.dtype()), [&]<class T>(T) {
    write_kernel<<<blocks_for(x.numel()), kThreads, 0, gpu::current(target.device())>>>(
        scatter, in<std::int64_t>(sorted.keys), in<std::int64_t>(sorted.values), in<T>(x), out<T>(target));
  });
  check_launch("scatter");
}

/// Element k of line (o, i) is item (o * inner + i) * n + k: its key and its number.
template <class T, class Key>
__global__ void __launch_bounds__(kThreads)
    keys_kernel(checks::Middle extents, const T* x, bool descending, Key* keys, std::int64_t* items) {
  const std::int64_t n = extents.outer * extents.n * extents.inner;
  for (std::int64_t item = first(); item < n; item += step()) {
    const std::int64_t line = item / extents.n, k = item % extents.n;
    const std::int64_t o = line / extents.inner, i = line % extents.inner;
    keys[item] = static_cast<Key>(sort_key(x[(o * extents.n + k) * extents.inner + i], descending));
    items[item] = item;
  }
}

/// The line of each item.
__global__ void __launch_bounds__(kThreads)
    lines_kernel(std::int64_t count, std::int64_t n, const std::int64_t* items, std::int64_t* lines) {
  for (std::int64_t at = first(); at < count; at += step()) lines[at] = items[at] / n;
}

/// Sorted by line and key, the items of a line are neighbours.
__global__ void __launch_bounds__(kThreads)
    first_kernel(checks::Middle extents, std::int64_t k, const std::int64_t* items, std::int64_t* indices) {
  const std::int64_t n = extents.outer * k * extents.inner;
  for (std::int64_t at = first(); at < n; at += step()) {
    const std::int64_t o = at / extents.inner / k, r = at / extents.inner % k, i = at % extents.inner;
    indices[at] = items[(o * extents.inner + i) * extents.n + r] % extents.n;
  }
}

/// Two stable sorts of all elements: by key, then by line.
void order(const Tensor& x, bool descending, const Tensor& indices) {
  const checks::Middle extents = checks::order(x, indices);
  if (indices.numel() == 0) return;
  const Device device = x.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const std::int64_t count = x.numel(), lines = extents.outer * extents.inner;
  Tensor items = Tensor::empty({count}, DType::kInt64, device);
  visit_dtype(x.dtype(), [&]<class T>() {
    using Key = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;
    const Tensor keys = Tensor::empty({count}, sizeof(Key) == 4 ? DType::kInt32 : DType::kInt64, device);
    keys_kernel<<<blocks_for(count), kThreads, 0, stream>>>(extents, in<T>(x), descending, out<Key>(keys),
                                                            out<std::int64_t>(items));
    check_launch("order");
    items = radix_sort<Key>("order", keys, items, 8 * static_cast<int>(sizeof(T))).values;
  });
  if (lines > 1) {
    const Tensor line_of = Tensor::empty({count}, DType::kInt64, device);
    lines_kernel<<<blocks_for(count), kThreads, 0, stream>>>(count, extents.n, in<std::int64_t>(items),
                                                             out<std::int64_t>(line_of));
    check_launch("order");
    items =
        radix_sort<std::int64_t>("order", line_of, items, std::bit_width(static_cast<std::uint64_t>(lines - 1))).values;
  }
  first_kernel<<<blocks_for(indices.numel()), kThreads, 0, stream>>>(extents, indices.size(1), in<std::int64_t>(items),
                                                                     out<std::int64_t>(indices));
  check_launch("order");
}

}  // namespace

const Indexing kIndexing{.gather = gather, .scatter_add = scatter_add, .scatter = scatter, .order = order};

}  // namespace lockstep::kernels::cuda
