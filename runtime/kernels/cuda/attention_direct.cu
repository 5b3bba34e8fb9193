// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/attention_direct.h"
#include "runtime/kernels/cuda/attention_norms.h"
#include "runtime/kernels/cuda/attention_operands.cuh"

// Attention by tiles of 32 rows and 32 columns of the scores. A warp owns 8 rows, a lane a column of the tile, and of
// the results a channel of each 32. The block that owns rows walks over the columns in order: nothing is added by two
// blocks.

namespace lockstep::kernels::cuda {

namespace {

constexpr int kTile = 32;
constexpr int kRows = 8;  ///< of a warp
constexpr int kTileThreads = kTile / kRows * 32;
constexpr std::int64_t kMaxChannels = 256;

/// 32 rows of 32 channels in shared memory; a column is read without bank conflicts.
using SharedTile = float[kTile][kTile + 1];

template <class T>
__host__ __device__ std::int64_t tiles_of(const AllHeads<T>& heads) {
  return (heads.count + kTile - 1) / kTile;
}

__device__ inline int lane() { return static_cast<int>(threadIdx.x % 32); }
/// The first of the tile's rows that this warp owns.
__device__ inline int own_row() { return static_cast<int>(threadIdx.x / 32) * kRows; }

/// Channels [channel, channel + 32) of rows from `first` on; zeros where there are none.
template <class T>
__device__ void load_tile(SharedTile& tile, const HeadRows<const T>& rows, std::int64_t first, std::int64_t channel) {
  const std::int64_t c = channel + lane();
  for (int r = own_row(); r < own_row() + kRows; ++r) {
    const bool exists = first + r < rows.count && c < rows.channels;
    tile[r][lane()] = exists ? to_float(*rows.at(first + r, c)) : 0.0f;
  }
}

/// products[r] = row `own_row() + r` of the tile at `row` . row `lane()` of the tile at `column`.
template <class T>
__device__ void multiply(const HeadRows<const T>& rows, std::int64_t row, const HeadRows<const T>& columns,
                         std::int64_t column, SharedTile& left, SharedTile& right, float (&products)[kRows]) {
#pragma unroll
  for (float& product : products) product = 0;
  for (std::int64_t channel = 0; channel < rows.channels; channel += kTile) {
    __syncthreads();
    load_tile(left, rows, row, channel);
    load_tile(right, columns, column, channel);
    __syncthreads();
#pragma unroll 8
    for (int c = 0; c < kTile; ++c) {
      const float of_column = right[lane()][c];
#pragma unroll
      for (int r = 0; r < kRows; ++r) products[r] += left[own_row() + r][c] * of_column;
    }
  }
}

/// sums[r][m] += the sum over the 32 columns of weights[own_row() + r][column] * channel 32 m + lane() of its row.
template <int Chunks, class T>
__device__ void add_weighted(const SharedTile& weights, const HeadRows<const T>& columns, std::int64_t column,
                             SharedTile& right, float (&sums)[kRows][Chunks]) {
#pragma unroll
  for (int m = 0; m < Chunks; ++m) {
    if (m * kTile >= columns.channels) continue;
    __syncthreads();
    load_tile(right, columns, column, m * kTile);
    __syncthreads();
#pragma unroll 8
    for (int j = 0; j < kTile; ++j) {
      const float value = right[j][lane()];
#pragma unroll
      for (int r = 0; r < kRows; ++r) sums[r][m] += weights[own_row() + r][j] * value;
    }
  }
}

template <int Chunks>
__device__ void clear(float (&sums)[kRows][Chunks]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int m = 0; m < Chunks; ++m) sums[r][m] = 0;
  }
}

/// The warp's rows of a head's results from row `first` on, times factor(r).
template <int Chunks, class T, class Factor>
__device__ void store_rows(const float (&sums)[kRows][Chunks], const HeadRows<T>& rows, std::int64_t first,
                           Factor factor) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t row = first + own_row() + r;
    if (row >= rows.count) continue;
#pragma unroll
    for (int m = 0; m < Chunks; ++m) {
      const std::int64_t c = m * kTile + lane();
      if (c < rows.channels) *rows.at(row, c) = from_float<T>(sums[r][m] * factor(r));
    }
  }
}

template <class T, int Chunks>
__global__ void __launch_bounds__(kTileThreads)
    attention_forward(AttentionOperands<T> operands, AllHeads<T> out, float* norms) {
  __shared__ SharedTile left, right, weights;
  const std::int64_t tiles = tiles_of(operands.q);
  for (std::int64_t task = blockIdx.x; task < operands.batch * operands.heads * tiles; task += gridDim.x) {
    const std::int64_t head = task / tiles;
    const std::int64_t first = task % tiles * kTile;
    const HeadRows<const T> q = operands.q_of(head), k = operands.k_of(head), v = operands.v_of(head);
    float sums[kRows][Chunks];
    clear(sums);
    float max[kRows], sum[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      // Not -inf, for which a query whose first keys are masked would give NaN.
      max[r] = -FLT_MAX;
      sum[r] = 0;
    }
    const std::int64_t seen = operands.keys_seen_before(first + kTile);
    for (std::int64_t key = 0; key < seen; key += kTile) {
      float scores[kRows];
      multiply(q, first, k, key, left, right, scores);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const std::int64_t query = first + own_row() + r;
        const float score = operands.scores_of(head, query)(key + lane(), scores[r]);
        const float next = fmaxf(max[r], Lanes{32}.max(score));
        const float probability = fast_exp(score - next);
        const float factor = fast_exp(max[r] - next);
        sum[r] = sum[r] * factor + Lanes{32}.sum(probability);
        max[r] = next;
        weights[own_row() + r][lane()] = operands.kept_by(head, query)(key + lane(), probability);
#pragma unroll
        for (int m = 0; m < Chunks; ++m) sums[r][m] *= factor;
      }
      add_weighted(weights, v, key, right, sums);
    }
    store_rows(sums, out.of_head(head), first, [&](int r) { return sum[r] == 0 ? 0.0f : 1.0f / sum[r]; });
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t query = first + own_row() + r;
      if (lane() == 0 && query < q.count) store_norms(norms, head * q.count + query, max[r], sum[r]);
    }
  }
}

template <class T, int Chunks>
__global__ void __launch_bounds__(kTileThreads)
    attention_dq(AttentionOperands<T> operands, Slopes<T> slopes, AllHeads<T> dq) {
  __shared__ SharedTile left, right, weights;
  const std::int64_t tiles = tiles_of(operands.q);
  for (std::int64_t task = blockIdx.x; task < operands.batch * operands.heads * tiles; task += gridDim.x) {
    const std::int64_t head = task / tiles;
    const std::int64_t first = task % tiles * kTile;
    const HeadRows<const T> q = operands.q_of(head), k = operands.k_of(head), v = operands.v_of(head);
    float sums[kRows][Chunks];
    clear(sums);
    const std::int64_t seen = operands.keys_seen_before(first + kTile);
    for (std::int64_t key = 0; key < seen; key += kTile) {
      float scores[kRows], of_probability[kRows];
      multiply(q, first, k, key, left, right, scores);
      multiply(slopes.dout.of_head(head), first, v, key, left, right, of_probability);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const std::int64_t query = first + own_row() + r;
        float probability, slope;
        slopes.of(head, query)(operands.scores_of(head, query)(key + lane(), scores[r]),
                               operands.kept_by(head, query)(key + lane(), of_probability[r]), probability, slope);
        weights[own_row() + r][lane()] = slope;
      }
      add_weighted(weights, k, key, right, sums);
    }
    store_rows(sums, dq.of_head(head), first, [&](int) { return operands.scale; });
  }
}

/// A block owns keys, whose heads of q follow one another. There may be no dk or dv.
template <class T, int Chunks>
__global__ void __launch_bounds__(kTileThreads)
    attention_dk_dv(AttentionOperands<T> operands, Slopes<T> slopes, AllHeads<T> dk, AllHeads<T> dv) {
  __shared__ SharedTile left, right, weights, slope_weights;
  const std::int64_t tiles = tiles_of(operands.k);
  const std::int64_t kv_heads = operands.batch * operands.heads / operands.sharing;
  for (std::int64_t task = blockIdx.x; task < kv_heads * tiles; task += gridDim.x) {
    const std::int64_t kv_head = task / tiles;
    const std::int64_t first = task % tiles * kTile;
    const HeadRows<const T> k = operands.k.of_head(kv_head), v = operands.v.of_head(kv_head);
    float of_k[kRows][Chunks], of_v[kRows][Chunks];
    clear(of_k);
    clear(of_v);
    for (std::int64_t head = kv_head * operands.sharing; head < (kv_head + 1) * operands.sharing; ++head) {
      const HeadRows<const T> q = operands.q_of(head), dout = slopes.dout.of_head(head);
      for (std::int64_t query = operands.causal ? first : 0; query < q.count; query += kTile) {
        float scores[kRows], of_probability[kRows];
        multiply(k, first, q, query, left, right, scores);
        multiply(v, first, dout, query, left, right, of_probability);
        const auto scores_of = operands.scores_of(head, query + lane());
        const auto slopes_of = slopes.of(head, query + lane());
        KeptKeys kept = operands.kept_by(head, query + lane());
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const std::int64_t key = first + own_row() + r;
          float probability, slope;
          slopes_of(scores_of(key, scores[r]), kept(key, of_probability[r]), probability, slope);
          weights[own_row() + r][lane()] = kept(key, probability);
          slope_weights[own_row() + r][lane()] = slope;
        }
        if (dv.data != nullptr) add_weighted(weights, dout, query, right, of_v);
        if (dk.data != nullptr) add_weighted(slope_weights, q, query, right, of_k);
      }
    }
    if (dk.data != nullptr) store_rows(of_k, dk.of_head(kv_head), first, [&](int) { return operands.scale; });
    if (dv.data != nullptr) store_rows(of_v, dv.of_head(kv_head), first, [](int) { return 1.0f; });
  }
}

/// Calls f.template operator()<T, Chunks>(): elements of q's dtype, and how many times 32 channels a row has at most.
template <class F>
void visit_problem(std::string_view operation, DType dtype, const checks::AttentionExtents& extents, F&& f) {
  const std::int64_t channels = std::max(extents.channels, extents.value_channels);
  if (channels > kMaxChannels) {
    throw ShapeError(std::string(operation) + ": a GPU takes heads of up to " + std::to_string(kMaxChannels) +
                     " channels, found " + std::to_string(channels));
  }
  visit_floating(operation, dtype, [&]<class T>() {
    if (channels <= 32) return f.template operator()<T, 1>();
    if (channels <= 64) return f.template operator()<T, 2>();
    if (channels <= 128) return f.template operator()<T, 4>();
    f.template operator()<T, 8>();
  });
}

}  // namespace

void attention_direct(const checks::AttentionExtents& extents, const Heads& q, const Heads& k, const Heads& v,
                      const AttentionScores& scores, const Heads& result, const Tensor& norms) {
  if (norms.numel() == 0) return;
  const Device device = result.device();
  const gpu::DeviceGuard guard(device);
  visit_problem("attention", q.dtype(), extents, [&]<class T, int Chunks>() {
    const auto operands = operands_of<T>(extents, q, k, v, scores);
    attention_forward<T, Chunks><<<blocks_for(extents.batch * extents.heads * tiles_of(operands.q), 1), kTileThreads, 0,
                                   gpu::current(device)>>>(operands, written_heads<T>(result), out<float>(norms));
    check_launch("attention");
  });
}

void attention_backward_direct(const checks::AttentionExtents& extents, const Heads& q, const Heads& k, const Heads& v,
                               const AttentionScores& scores, const Heads& result, const Tensor& norms,
                               const Heads& dout, const Heads& dq, const Heads& dk, const Heads& dv) {
  const Device device = q.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const Tensor delta = attention_deltas(result, dout);
  visit_problem("attention_backward", q.dtype(), extents, [&]<class T, int Chunks>() {
    const auto operands = operands_of<T>(extents, q, k, v, scores);
    const Slopes<T> slopes{read_heads<T>(dout), in<float>(norms), in<float>(delta)};
    if (dq.defined() && dq.numel() > 0) {
      attention_dq<T, Chunks>
          <<<blocks_for(extents.batch * extents.heads * tiles_of(operands.q), 1), kTileThreads, 0, stream>>>(
              operands, slopes, written_heads<T>(dq));
      check_launch("attention_backward, dq");
    }
    if ((dk.defined() && dk.numel() > 0) || (dv.defined() && dv.numel() > 0)) {
      attention_dk_dv<T, Chunks>
          <<<blocks_for(extents.batch * extents.kv_heads * tiles_of(operands.k), 1), kTileThreads, 0, stream>>>(
              operands, slopes, written_heads<T>(dk), written_heads<T>(dv));
      check_launch("attention_backward, dk and dv");
    }
  });
}

}  // namespace lockstep::kernels::cuda
