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

/// The first of n ascending keys that is not below `key`; n where there is none.
__device__ std::int64_t first_not_below(const std::int64_t* keys, std::int64_t n, std::int64_t key) {
  std::int64_t begin = 0;
  for (std::int64_t left = n; left > 0;) {
    const std::int64_t half = left / 2;
    const bool below = keys[begin + half] < key;
    if (below) begin += half + 1;
    left = below ? left - half - 1 : half;
  }
  return begin;
}

/// Sorted keys, each with its place. A run of equal keys is added up in pieces from its begin on, so that many threads
/// share that of a frequent one.
struct SortedKeys {
  static constexpr std::int64_t kPiece = 256;

  const std::int64_t* keys;
  const std::int64_t* places;
  std::int64_t n;

  __device__ bool begins_run(std::int64_t at) const { return at == 0 || keys[at - 1] != keys[at]; }
  __device__ bool begins_piece(std::int64_t at) const {
    if (begins_run(at)) return true;
    if (at < kPiece || keys[at - kPiece] != keys[at]) return false;
    return (at - first_not_below(keys, at, keys[at])) % kPiece == 0;
  }
  /// Of the key at `at`, but at most so many behind that.
  __device__ std::int64_t end_of_run(std::int64_t at, std::int64_t most) const {
    return at + first_not_below(keys + at, min(most, n - at), keys[at] + 1);
  }
  /// Whether the run that begins here has several pieces.
  __device__ bool has_pieces(std::int64_t at) const { return at + kPiece < n && keys[at + kPiece] == keys[at]; }

  /// Where the sums of a piece of several are kept. In kPiece places at most one run of several pieces begins, and one
  /// further piece.
  __device__ static std::int64_t slot_of(std::int64_t at, bool is_first) {
    return at / kPiece * 2 + (is_first ? 1 : 0);
  }
  std::int64_t slots() const { return n <= kPiece ? 0 : (n + kPiece - 1) / kPiece * 2; }
};

template <class Out, int W>
__device__ void write_sums(const float (&sums)[W], bool accumulate, Out* to) {
#pragma unroll
  for (int w = 0; w < W; ++w) to[w] = from_float<Out>(accumulate ? to_float(to[w]) + sums[w] : sums[w]);
}

/// Adds up the rows of dy of each piece, in their order, in float32. Those of a run of one piece go to its row of the
/// table, others to `parts`.
template <class T, class Out, int W>
__global__ void __launch_bounds__(kThreads)
    add_pieces(const T* dy, SortedKeys sorted, Table table, bool accumulate, Out* dweight, float* parts) {
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; at < sorted.n;
       at += static_cast<std::int64_t>(gridDim.x) * blockDim.y) {
    const std::int64_t key = sorted.keys[at];
    if (key == table.rows || !sorted.begins_piece(at)) continue;
    const bool is_first = sorted.begins_run(at);
    const bool is_whole = is_first && !sorted.has_pieces(at);
    const std::int64_t end = sorted.end_of_run(at, SortedKeys::kPiece);
    for (std::int64_t c = threadIdx.x * W; c < table.width; c += blockDim.x * W) {
      float sums[W] = {};
#pragma unroll 4
      for (std::int64_t i = at; i < end; ++i) {
        const Values<T, W> values = load<W>(dy + sorted.places[i] * table.width + c);
#pragma unroll
        for (int w = 0; w < W; ++w) sums[w] += to_float(values.values[w]);
      }
      if (is_whole) {
        write_sums(sums, accumulate, dweight + key * table.width + c);
      } else {
        write_sums(sums, false, parts + SortedKeys::slot_of(at, is_first) * table.width + c);
      }
    }
  }
}

/// Adds up the pieces of each run of several, in their order.
template <class Out>
__global__ void __launch_bounds__(kThreads)
    join_pieces(const float* parts, SortedKeys sorted, Table table, bool accumulate, Out* dweight) {
  constexpr std::int64_t kPiece = SortedKeys::kPiece;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; at < sorted.n;
       at += static_cast<std::int64_t>(gridDim.x) * blockDim.y) {
    const std::int64_t key = sorted.keys[at];
    if (key == table.rows || !sorted.begins_run(at) || !sorted.has_pieces(at)) continue;
    const std::int64_t end = sorted.end_of_run(at, sorted.n);
    for (std::int64_t c = threadIdx.x; c < table.width; c += blockDim.x) {
      float sums[1] = {parts[SortedKeys::slot_of(at, true) * table.width + c]};
      for (std::int64_t i = at + kPiece; i < end; i += kPiece) {
        sums[0] += parts[SortedKeys::slot_of(i, false) * table.width + c];
      }
      write_sums(sums, accumulate, dweight + key * table.width + c);
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
  const SortedKeys runs{keys, places, n};
  const Tensor parts = Tensor::empty({runs.slots(), table.width}, DType::kFloat32, device);
  visit_channels(
      "embedding_backward", dy.dtype(), table.width,
      [&]<class T, int W>() {
        const dim3 threads = block_of<W>(table.width), joining = block_of<1>(table.width);
        visit_floating("embedding_backward", dweight.dtype(), [&]<class Out>() {
          add_pieces<T, Out, W><<<blocks_for(n, static_cast<int>(threads.y)), threads, 0, stream>>>(
              in<T>(dy), runs, table, accumulate, out<Out>(dweight), out<float>(parts));
          check_launch("embedding_backward");
          if (runs.slots() == 0) return;
          join_pieces<Out><<<blocks_for(n, static_cast<int>(joining.y)), joining, 0, stream>>>(
              in<float>(parts), runs, table, accumulate, out<Out>(dweight));
          check_launch("embedding_backward, pieces");
        });
      },
      dy.data());
}

}  // namespace

const Embedding kEmbedding{.embedding = embedding, .embedding_backward = embedding_backward};

}  // namespace lockstep::kernels::cuda
