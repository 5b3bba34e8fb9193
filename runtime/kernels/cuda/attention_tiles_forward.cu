// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/attention_tiles.cuh"

namespace lockstep::kernels::cuda {

namespace {

/// How far scores may exceed the one by which probabilities are scaled. Sums are scaled anew only beyond: seldom, once
/// the first keys have been seen. e^8 is far from the largest float16.
constexpr float kSlack = 8;

/// The sums times the factor of each row, which both lanes of the row give.
template <class T, int Fragments>
__device__ void scale_rows(Sums (&sums)[Fragments], WarpTile<T, kEdge, kColumns>& scratch, float factor) {
  __syncwarp();
#pragma unroll
  for (int j = 0; j < 8; ++j) *scratch.at(warp_lane() / 2, warp_lane() % 2 * 8 + j) = factor;
  __syncwarp();
  Sums factors;
  wmma::load_matrix_sync(factors, scratch.values, scratch.kStride, wmma::mem_row_major);
#pragma unroll
  for (Sums& of : sums) {
#pragma unroll
    for (int i = 0; i < of.num_elements; ++i) of.x[i] *= factors.x[i];
  }
}

template <class T, int Width>
__global__ void __launch_bounds__(TileBlock<Width>::kThreads)
    attention_tiles_forward(AttentionOperands<T> operands, AllHeads<T> out, float* norms) {
  if constexpr (Multiplied<T>) {
    using Block = TileBlock<Width>;
    using Queries = SharedRows<T, Block::kRows, Width>;
    using Keys = SharedRows<T, kColumns, Width>;
    using Tile = WarpTile<T, kEdge, kColumns>;
    __shared__ Queries queries;
    __shared__ Keys keys, values;
    __shared__ Tile tiles[Block::kWarps];
    Tile& tile = tiles[Block::warp()];
    const std::int64_t blocks = Block::blocks_of(operands.q.count);
    for (std::int64_t task = blockIdx.x; task < operands.batch * operands.heads * blocks; task += gridDim.x) {
      const std::int64_t head = task / blocks;
      const std::int64_t first = task % blocks * Block::kRows;
      const std::int64_t query = first + Block::own_row() + Tile::own_row();
      const HeadRows<const T> q = operands.q_of(head), k = operands.k_of(head), v = operands.v_of(head);
      const QueryScores<T> scores_of = operands.scores_of(head, query);
      KeptKeys kept = operands.kept_by(head, query);
      Sums sums[Width / kEdge];
      clear_sums(sums);
      // Not -inf, for which a query whose first keys are masked would give NaN.
      float reference = -FLT_MAX;
      float sum = 0;
      __syncthreads();  // before the tiles of the last task are written over
      load_rows(queries, q, first);
      const std::int64_t seen = operands.keys_seen_before(first + Block::kRows);
      for (std::int64_t key = 0; key < seen; key += kColumns) {
        __syncthreads();
        load_rows(keys, k, key);
        load_rows(values, v, key);
        __syncthreads();
        multiply_rows(queries, Block::own_row(), keys, 0, tile);
        __syncwarp();
        float own[kEdge];
        tile.read(own);
        const std::int64_t first_key = key + Tile::own_column();
        float largest = -INFINITY;
#pragma unroll
        for (int i = 0; i < kEdge; ++i) {
          own[i] = scores_of(first_key + i, own[i]);
          largest = fmaxf(largest, own[i]);
        }
        largest = Lanes{2}.max(largest);
        const bool moves = largest > reference + kSlack;
        const float factor = moves ? fast_exp(reference - largest) : 1.0f;
        if (moves) reference = largest;
        sum *= factor;
        if (Lanes{kWarp}.max(moves ? 1.0f : 0.0f) > 0) scale_rows(sums, tile, factor);
#pragma unroll
        for (int i = 0; i < kEdge; ++i) {
          const float probability = fast_exp(own[i] - reference);
          sum += probability;
          own[i] = kept.keeps(first_key + i) ? probability : 0.0f;
        }
        __syncwarp();
        tile.write(own);
        __syncwarp();
        add_products(tile, values, sums);
      }
      sum = Lanes{2}.sum(sum);
      store_sums(sums, tile, out.of_head(head), first + Block::own_row(), sum == 0 ? 0.0f : kept.factor() / sum);
      if (warp_lane() % 2 == 0 && query < q.count) store_norms(norms, head * q.count + query, reference, sum);
    }
  }
}

}  // namespace

bool attention_has_tiles(const checks::AttentionExtents& extents, DType dtype, Device device) {
  if (!is_reduced(dtype) || std::max(extents.channels, extents.value_channels) > kMaxTileChannels ||
      std::min(extents.queries, extents.keys) < kColumns) {
    return false;
  }
  if (dtype == DType::kFloat16) return true;
  // What the kernels were compiled for counts, not what the GPU has: a newer one may run older code.
  const gpu::DeviceGuard guard(device);
  cudaFuncAttributes attributes;
  gpu::check(cudaFuncGetAttributes(&attributes, attention_tiles_forward<BFloat16, 32>), "cudaFuncGetAttributes");
  return attributes.ptxVersion >= 80;
}

void attention_by_tiles(const checks::AttentionExtents& extents, const Heads& q, const Heads& k, const Heads& v,
                        const AttentionScores& scores, const Heads& result, const Tensor& norms) {
  if (norms.numel() == 0) return;
  const Device device = result.device();
  const gpu::DeviceGuard guard(device);
  visit_tiles(q.dtype(), extents, [&]<class T, int Width>() {
    using Block = TileBlock<Width>;
    const std::int64_t blocks = extents.batch * extents.heads * Block::blocks_of(extents.queries);
    attention_tiles_forward<T, Width><<<blocks_for(blocks, 1), Block::kThreads, 0, gpu::current(device)>>>(
        operands_of<T>(extents, q, k, v, scores), written_heads<T>(result), out<float>(norms));
    check_launch("attention");
  });
}

}  // namespace lockstep::kernels::cuda
