// SPDX-License-Identifier: Apache-2.0
#include <cfloat>

#include "runtime/kernels/cuda/attention_direct.h"
#include "runtime/kernels/cuda/rows.cuh"
#include "runtime/kernels/functors/dropout.h"
#include "runtime/kernels/functors/fast_exp.h"

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

/// A head's rows in memory.
template <class T>
struct HeadRows {
  const T* data;
  std::int64_t count;
  std::int64_t channels;

  __device__ HeadRows of_head(std::int64_t head) const { return {data + head * count * channels, count, channels}; }
};

/// The inputs that all blocks of a pass read.
template <class T>
struct AttentionOperands {
  HeadRows<T> q, k, v;
  std::int64_t batch, heads, sharing;  ///< `sharing` heads of q read a head of k and v
  float scale;
  bool causal;
  const bool* allowed;  ///< a mask of bool; null: none
  const T* bias;        ///< a mask that is added; null: none. At most one of the two is given
  MaskSteps steps;
  AttentionDropout dropout;
  Dropout drop;

  __device__ HeadRows<T> q_of(std::int64_t head) const { return q.of_head(head); }
  __device__ HeadRows<T> k_of(std::int64_t head) const { return k.of_head(head / sharing); }
  __device__ HeadRows<T> v_of(std::int64_t head) const { return v.of_head(head / sharing); }
  __host__ __device__ std::int64_t query_tiles() const { return (q.count + kTile - 1) / kTile; }
  __host__ __device__ std::int64_t key_tiles() const { return (k.count + kTile - 1) / kTile; }
  /// Keys that queries before `end` see.
  __device__ std::int64_t keys_seen_before(std::int64_t end) const {
    const std::int64_t limit = causal && end < k.count ? end : k.count;
    return limit;
  }

  __device__ float score(std::int64_t head, std::int64_t query, std::int64_t key, float product) const {
    if (query >= q.count || key >= k.count || (causal && key > query)) return -INFINITY;
    const std::int64_t at = steps.offset(head / heads, head % heads) + query * steps.query + key;
    if (allowed != nullptr) return allowed[at] ? scale * product : -INFINITY;
    return scale * product + (bias != nullptr ? to_float(bias[at]) : 0.0f);
  }

  /// Applies the dropout of (query, key) to a value. The mask is made again from dropout's key wherever it is needed.
  __device__ float kept(std::int64_t head, std::int64_t query, std::int64_t key, float value) const {
    if (!(dropout.p > 0)) return value;
    StepPosition moved;
    if (dropout.key.position != nullptr) moved = *dropout.key.position;
    const CounterRng rng(dropout.key.seed, CounterRng::Purpose::kDropout, dropout.key.layer,
                         dropout.key.step + moved.step, dropout.key.call);
    const std::int64_t first = dropout.first_element + moved.first_sample * dropout.elements_of_sample;
    return drop(rng.at(static_cast<std::uint64_t>(first + (head * q.count + query) * k.count + key)), value);
  }
};

__device__ inline int lane() { return static_cast<int>(threadIdx.x % 32); }
/// The first of the tile's rows that this warp owns.
__device__ inline int own_row() { return static_cast<int>(threadIdx.x / 32) * kRows; }

/// Channels [channel, channel + 32) of rows from `first` on; zeros where there are none.
template <class T>
__device__ void load_tile(SharedTile& tile, const HeadRows<T>& rows, std::int64_t first, std::int64_t channel) {
  const std::int64_t c = channel + lane();
  for (int r = own_row(); r < own_row() + kRows; ++r) {
    const bool exists = first + r < rows.count && c < rows.channels;
    tile[r][lane()] = exists ? to_float(rows.data[(first + r) * rows.channels + c]) : 0.0f;
  }
}

/// products[r] = row `own_row() + r` of the tile at `row` . row `lane()` of the tile at `column`.
template <class T>
__device__ void multiply(const HeadRows<T>& rows, std::int64_t row, const HeadRows<T>& columns, std::int64_t column,
                         SharedTile& left, SharedTile& right, float (&products)[kRows]) {
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
__device__ void add_weighted(const SharedTile& weights, const HeadRows<T>& columns, std::int64_t column,
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

/// The warp's rows of results [count, channels] from row `first` on, times factor(r).
template <int Chunks, class T, class Factor>
__device__ void store_rows(const float (&sums)[kRows][Chunks], T* out, std::int64_t first, std::int64_t count,
                           std::int64_t channels, Factor factor) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t row = first + own_row() + r;
    if (row >= count) continue;
#pragma unroll
    for (int m = 0; m < Chunks; ++m) {
      const std::int64_t c = m * kTile + lane();
      if (c < channels) out[row * channels + c] = from_float<T>(sums[r][m] * factor(r));
    }
  }
}

template <class T, int Chunks>
__global__ void __launch_bounds__(kTileThreads) attention_forward(AttentionOperands<T> operands, T* out, float* norms) {
  __shared__ SharedTile left, right, weights;
  const std::int64_t tiles = operands.query_tiles();
  for (std::int64_t task = blockIdx.x; task < operands.batch * operands.heads * tiles; task += gridDim.x) {
    const std::int64_t head = task / tiles;
    const std::int64_t first = task % tiles * kTile;
    const HeadRows<T> q = operands.q_of(head), k = operands.k_of(head), v = operands.v_of(head);
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
        const float score = operands.score(head, first + own_row() + r, key + lane(), scores[r]);
        const float next = fmaxf(max[r], Lanes{32}.max(score));
        const float probability = fast_exp(score - next);
        const float factor = fast_exp(max[r] - next);
        sum[r] = sum[r] * factor + Lanes{32}.sum(probability);
        max[r] = next;
        weights[own_row() + r][lane()] = operands.kept(head, first + own_row() + r, key + lane(), probability);
#pragma unroll
        for (int m = 0; m < Chunks; ++m) sums[r][m] *= factor;
      }
      add_weighted(weights, v, key, right, sums);
    }
    store_rows(sums, out + head * q.count * v.channels, first, q.count, v.channels,
               [&](int r) { return sum[r] == 0 ? 0.0f : 1.0f / sum[r]; });
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t query = first + own_row() + r;
      if (lane() == 0 && query < q.count) {
        const bool blind = sum[r] == 0;
        norms[2 * (head * q.count + query)] = blind ? 0.0f : max[r];
        norms[2 * (head * q.count + query) + 1] = blind ? INFINITY : logf(sum[r]);
      }
    }
  }
}

/// The inputs of the backward pass for each query beside q, by [batch * heads, Tq].
template <class T>
struct Slopes {
  HeadRows<T> dout;
  const float* norms;
  const float* delta;  ///< sum over channels of dout * out

  /// The probability of a score and the score's slope, given the probability's.
  __device__ void operator()(std::int64_t head, std::int64_t query, float score, float of_probability,
                             float& probability, float& slope) const {
    const std::int64_t at = head * dout.count + query;
    const bool exists = query < dout.count;
    probability = exists ? fast_exp(score - norms[2 * at] - norms[2 * at + 1]) : 0.0f;
    slope = exists ? probability * (of_probability - delta[at]) : 0.0f;
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    multiply_rows(const T* out, const T* dout, float* delta, std::int64_t rows, std::int64_t channels, Lanes team) {
  for_each_row(team, rows, [&](std::int64_t row, bool live) {
    float sum = 0;
    for (std::int64_t c = team.rank(); live && c < channels; c += team.size) {
      sum += to_float(out[row * channels + c]) * to_float(dout[row * channels + c]);
    }
    sum = team.sum(sum);
    if (live && team.rank() == 0) delta[row] = sum;
  });
}

template <class T, int Chunks>
__global__ void __launch_bounds__(kTileThreads) attention_dq(AttentionOperands<T> operands, Slopes<T> slopes, T* dq) {
  __shared__ SharedTile left, right, weights;
  const std::int64_t tiles = operands.query_tiles();
  for (std::int64_t task = blockIdx.x; task < operands.batch * operands.heads * tiles; task += gridDim.x) {
    const std::int64_t head = task / tiles;
    const std::int64_t first = task % tiles * kTile;
    const HeadRows<T> q = operands.q_of(head), k = operands.k_of(head), v = operands.v_of(head);
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
        slopes(head, query, operands.score(head, query, key + lane(), scores[r]),
               operands.kept(head, query, key + lane(), of_probability[r]), probability, slope);
        weights[own_row() + r][lane()] = slope;
      }
      add_weighted(weights, k, key, right, sums);
    }
    store_rows(sums, dq + head * q.count * q.channels, first, q.count, q.channels, [&](int) { return operands.scale; });
  }
}

/// A block owns keys, whose heads of q follow one another. dk and dv may be null.
template <class T, int Chunks>
__global__ void __launch_bounds__(kTileThreads)
    attention_dk_dv(AttentionOperands<T> operands, Slopes<T> slopes, T* dk, T* dv) {
  __shared__ SharedTile left, right, weights, slope_weights;
  const std::int64_t tiles = operands.key_tiles();
  const std::int64_t kv_heads = operands.batch * operands.heads / operands.sharing;
  for (std::int64_t task = blockIdx.x; task < kv_heads * tiles; task += gridDim.x) {
    const std::int64_t kv_head = task / tiles;
    const std::int64_t first = task % tiles * kTile;
    const HeadRows<T> k = operands.k.of_head(kv_head), v = operands.v.of_head(kv_head);
    float of_k[kRows][Chunks], of_v[kRows][Chunks];
    clear(of_k);
    clear(of_v);
    for (std::int64_t head = kv_head * operands.sharing; head < (kv_head + 1) * operands.sharing; ++head) {
      const HeadRows<T> q = operands.q_of(head), dout = slopes.dout.of_head(head);
      for (std::int64_t query = operands.causal ? first : 0; query < q.count; query += kTile) {
        float scores[kRows], of_probability[kRows];
        multiply(k, first, q, query, left, right, scores);
        multiply(v, first, dout, query, left, right, of_probability);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const std::int64_t key = first + own_row() + r;
          float probability, slope;
          slopes(head, query + lane(), operands.score(head, query + lane(), key, scores[r]),
                 operands.kept(head, query + lane(), key, of_probability[r]), probability, slope);
          weights[own_row() + r][lane()] = operands.kept(head, query + lane(), key, probability);
          slope_weights[own_row() + r][lane()] = slope;
        }
        if (dv != nullptr) add_weighted(weights, dout, query, right, of_v);
        if (dk != nullptr) add_weighted(slope_weights, q, query, right, of_k);
      }
    }
    if (dk != nullptr) {
      store_rows(of_k, dk + kv_head * k.count * k.channels, first, k.count, k.channels,
                 [&](int) { return operands.scale; });
    }
    if (dv != nullptr) {
      store_rows(of_v, dv + kv_head * v.count * v.channels, first, v.count, v.channels, [](int) { return 1.0f; });
    }
  }
}

template <class T>
AttentionOperands<T> operands_of(const checks::AttentionExtents& extents, const Tensor& q, const Tensor& k,
                                 const Tensor& v, const AttentionScores& scores) {
  const Tensor& mask = scores.mask;
  const bool is_bool = mask.defined() && mask.dtype() == DType::kBool;
  return {.q = {in<T>(q), extents.queries, extents.channels},
          .k = {in<T>(k), extents.keys, extents.channels},
          .v = {in<T>(v), extents.keys, extents.value_channels},
          .batch = extents.batch,
          .heads = extents.heads,
          .sharing = extents.heads / std::max<std::int64_t>(extents.kv_heads, 1),
          .scale = static_cast<float>(scores.scale),
          .causal = scores.causal,
          .allowed = is_bool ? in<bool>(mask) : nullptr,
          .bias = mask.defined() && !is_bool ? in<T>(mask) : nullptr,
          .steps = mask.defined() ? MaskSteps(mask) : MaskSteps(),
          .dropout = scores.dropout,
          .drop = Dropout(scores.dropout.p)};
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

void attention_direct(const checks::AttentionExtents& extents, const Tensor& q, const Tensor& k, const Tensor& v,
                      const AttentionScores& scores, const Tensor& out_rows, const Tensor& norms) {
  if (norms.numel() == 0) return;
  const Device device = out_rows.device();
  const gpu::DeviceGuard guard(device);
  visit_problem("attention", q.dtype(), extents, [&]<class T, int Chunks>() {
    const auto operands = operands_of<T>(extents, q, k, v, scores);
    attention_forward<T, Chunks><<<blocks_for(extents.batch * extents.heads * operands.query_tiles(), 1), kTileThreads,
                                   0, gpu::current(device)>>>(operands, out<T>(out_rows), out<float>(norms));
    check_launch("attention");
  });
}

void attention_backward_direct(const checks::AttentionExtents& extents, const Tensor& q, const Tensor& k,
                               const Tensor& v, const AttentionScores& scores, const Tensor& out_rows,
                               const Tensor& norms, const Tensor& dout, const Tensor& dq, const Tensor& dk,
                               const Tensor& dv) {
  const Device device = q.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const Tensor delta = Tensor::empty({extents.batch, extents.heads, extents.queries}, DType::kFloat32, device);
  visit_problem("attention_backward", q.dtype(), extents, [&]<class T, int Chunks>() {
    const auto operands = operands_of<T>(extents, q, k, v, scores);
    const Slopes<T> slopes{{in<T>(dout), extents.queries, extents.value_channels}, in<float>(norms), in<float>(delta)};
    if (delta.numel() > 0) {
      multiply_rows<T><<<blocks_for(delta.numel(), kThreads / 32), kThreads, 0, stream>>>(
          in<T>(out_rows), in<T>(dout), out<float>(delta), delta.numel(), extents.value_channels, Lanes{32});
      check_launch("attention_backward, sums of out and dout");
    }
    if (dq.defined() && dq.numel() > 0) {
      attention_dq<T, Chunks>
          <<<blocks_for(extents.batch * extents.heads * operands.query_tiles(), 1), kTileThreads, 0, stream>>>(
              operands, slopes, out<T>(dq));
      check_launch("attention_backward, dq");
    }
    if ((dk.defined() && dk.numel() > 0) || (dv.defined() && dv.numel() > 0)) {
      attention_dk_dv<T, Chunks>
          <<<blocks_for(extents.batch * extents.kv_heads * operands.key_tiles(), 1), kTileThreads, 0, stream>>>(
              operands, slopes, dk.defined() ? out<T>(dk) : nullptr, dv.defined() ? out<T>(dv) : nullptr);
      check_launch("attention_backward, dk and dv");
    }
  });
}

}  // namespace lockstep::kernels::cuda
