// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/values.cuh"
#include "runtime/kernels/embedding.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

namespace {

/// The extents of the table. A block's x threads lie along a row's elements, its y threads along the rows.
struct Table {
  std::int64_t rows;
  std::int64_t width;
};

template <int W>
dim3 block_of(std::int64_t width) {
  unsigned lanes = 1;
  while (lanes < kThreads && lanes * W < width) lanes *= 2;
  return {lanes, kThreads / lanes};
}

/// Moves 4 bytes an element of 16-bit types and 8 of float32.
template <class T, int W>
__global__ void __launch_bounds__(kThreads)
    look_up(const T* weight, const std::int64_t* indices, std::int64_t n, Table table, std::int64_t skipped, T* y) {
  for (std::int64_t place = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; place < n;
       place += static_cast<std::int64_t>(gridDim.x) * blockDim.y) {
    const std::int64_t index = indices[place];
    const bool inside = index >= 0 && index < table.rows;
    for (std::int64_t c = threadIdx.x * W; c < table.width; c += blockDim.x * W) {
      Values<T, W> values;
      if (inside && index != skipped) {
        values = load<W>(weight + index * table.width + c);
      } else {
#pragma unroll
        for (int w = 0; w < W; ++w) values.values[w] = from_float<T>(inside ? 0.0f : NAN);
      }
      store(values, y + place * table.width + c);
    }
  }
}

/// Writes the pairs to be sorted: each index with its place. Indices that get no gradient become `rows`, to come last.
__global__ void __launch_bounds__(kThreads) number(const std::int64_t* indices, std::int64_t n, std::int64_t rows,
                                                   std::int64_t skipped, std::int64_t* keys, std::int64_t* places) {
  for (std::int64_t i = first(); i < n; i += step()) {
    const std::int64_t index = indices[i];
    keys[i] = index >= 0 && index < rows && index != skipped ? index : rows;
    places[i] = i;
  }
}

/// Where a run of equal keys begins, its rows of dy are added up in their order, in float32 and in pieces, and go to
/// one row of the table.
constexpr std::int64_t kSummed = 256;

template <class T, class Out, int W>
__global__ void __launch_bounds__(kThreads) add_runs(const T* dy, const std::int64_t* keys, const std::int64_t* places,
                                                     std::int64_t n, Table table, bool accumulate, Out* dweight) {
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; at < n;
       at += static_cast<std::int64_t>(gridDim.x) * blockDim.y) {
    const std::int64_t key = keys[at];
    if (key == table.rows || (at > 0 && keys[at - 1] == key)) continue;
    for (std::int64_t c = threadIdx.x * W; c < table.width; c += blockDim.x * W) {
      float sums[W] = {};
      for (std::int64_t i = at; i < n && keys[i] == key;) {
        float part[W] = {};
        for (const std::int64_t end = i + kSummed; i < end && i < n && keys[i] == key; ++i) {
          const Values<T, W> values = load<W>(dy + places[i] * table.width + c);
#pragma unroll
          for (int w = 0; w < W; ++w) part[w] += to_float(values.values[w]);
        }
#pragma unroll
        for (int w = 0; w < W; ++w) sums[w] += part[w];
      }
      Out* const to = dweight + key * table.width + c;
#pragma unroll
      for (int w = 0; w < W; ++w) to[w] = from_float<Out>(accumulate ? to_float(to[w]) + sums[w] : sums[w]);
    }
  }
}

void embedding(const Tensor& weight, const Tensor& indices, std::int64_t skipped, const Tensor& y) {
  checks::embedding(weight, indices, y);
  if (y.numel() == 0) return;
  const Device device = y.device();
  const gpu::DeviceGuard guard(device);
  const Table table{weight.size(0), weight.size(1)};
  const std::int64_t n = indices.numel();
  visit_channels(
      "embedding", weight.dtype(), table.width,
      [&]<class T, int W>() {
        const dim3 threads = block_of<W>(table.width);
        look_up<T, W><<<blocks_for(n, static_cast<int>(threads.y)), threads, 0, gpu::current(device)>>>(
            in<T>(weight), in<std::int64_t>(indices), n, table, skipped, out<T>(y));
        check_launch("embedding");
      },
      weight.data(), y.data());
}

void embedding_backward(const Tensor& dy, const Tensor& indices, std::int64_t skipped, bool accumulate,
                        const Tensor& dweight) {
  checks::embedding_backward(dy, indices, dweight);
  if (dweight.numel() == 0) return;
  const Device device = dweight.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  // Zero has the same bytes in every dtype.
  if (!accumulate) gpu::check(cudaMemsetAsync(dweight.data(), 0, dweight.bytes(), stream), "embedding_backward");
  const std::int64_t n = indices.numel();
  if (n == 0) return;
  const Table table{dweight.size(0), dweight.size(1)};
  const Tensor unsorted = Tensor::empty({2, n}, DType::kInt64, device);
  const Tensor sorted = Tensor::empty({2, n}, DType::kInt64, device);
  std::int64_t* const keys = out<std::int64_t>(sorted);
  std::int64_t* const places = keys + n;
  number<<<blocks_for(n), kThreads, 0, stream>>>(in<std::int64_t>(indices), n, table.rows, skipped,
                                                 out<std::int64_t>(unsorted), out<std::int64_t>(unsorted) + n);
  check_launch("embedding_backward, numbers");
  // Stable: the places of an index stay in their order.
  const int bits = std::bit_width(static_cast<std::uint64_t>(table.rows));
  const auto sort = [&](void* workspace, std::size_t& bytes) {
    gpu::check(cub::DeviceRadixSort::SortPairs(workspace, bytes, in<std::int64_t>(unsorted), keys,
                                               in<std::int64_t>(unsorted) + n, places, n, 0, bits, stream),
               "embedding_backward, sort");
  };
  std::size_t bytes = 0;
  sort(nullptr, bytes);
  const Tensor workspace =
      Tensor::empty({static_cast<std::int64_t>(std::max<std::size_t>(bytes, 1))}, DType::kUInt8, device);
  sort(workspace.data(), bytes);
  visit_channels(
      "embedding_backward", dy.dtype(), table.width,
      [&]<class T, int W>() {
        const dim3 threads = block_of<W>(table.width);
        visit_floating("embedding_backward", dweight.dtype(), [&]<class Out>() {
          add_runs<T, Out, W><<<blocks_for(n, static_cast<int>(threads.y)), threads, 0, stream>>>(
              in<T>(dy), keys, places, n, table, accumulate, out<Out>(dweight));
        });
        check_launch("embedding_backward");
      },
      dy.data());
}

}  // namespace

const Embedding kEmbedding{.embedding = embedding, .embedding_backward = embedding_backward};

}  // namespace lockstep::kernels::cuda
