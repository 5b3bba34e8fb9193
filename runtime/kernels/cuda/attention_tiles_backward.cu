// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/attention_norms.h"
#include "runtime/kernels/cuda/attention_tiles.cuh"

namespace lockstep::kernels::cuda {

namespace {

template <class T, int Width>
__global__ void __launch_bounds__(TileBlock<Width>::kThreads)
    attention_tiles_dq(AttentionOperands<T> operands, Slopes<T> slopes, AllHeads<T> dq) {
  if constexpr (Multiplied<T>) {
    using Block = TileBlock<Width>;
    using Queries = SharedRows<T, Block::kRows, Width>;
    using Keys = SharedRows<T, kColumns, Width>;
    using Tile = WarpTile<T, kEdge, kColumns>;
    __shared__ Queries queries, slopes_of_out;
    __shared__ Keys keys, values;
    __shared__ Tile tiles[Block::kWarps], slope_tiles[Block::kWarps];
    Tile &tile = tiles[Block::warp()], &slope_tile = slope_tiles[Block::warp()];
    const std::int64_t blocks = Block::blocks_of(operands.q.count);
    for (std::int64_t task = blockIdx.x; task < operands.batch * operands.heads * blocks; task += gridDim.x) {
      const std::int64_t head = task / blocks;
      const std::int64_t first = task % blocks * Block::kRows;
      const std::int64_t query = first + Block::own_row() + Tile::own_row();
      const HeadRows<const T> q = operands.q_of(head), k = operands.k_of(head), v = operands.v_of(head);
      const QueryScores<T> scores_of = operands.scores_of(head, query);
      const typename Slopes<T>::OfQuery slopes_of = slopes.of(head, query);
      KeptKeys kept = operands.kept_by(head, query);
      Sums sums[Width / kEdge];
      clear_sums(sums);
      __syncthreads();  // before the tiles of the last task are written over
      load_rows(queries, q, first);
      load_rows(slopes_of_out, slopes.dout.of_head(head), first);
      const std::int64_t seen = operands.keys_seen_before(first + Block::kRows);
      for (std::int64_t key = 0; key < seen; key += kColumns) {
        __syncthreads();
        load_rows(keys, k, key);
        load_rows(values, v, key);
        __syncthreads();
        multiply_rows(queries, Block::own_row(), keys, 0, tile);
        multiply_rows(slopes_of_out, Block::own_row(), values, 0, slope_tile);
        __syncwarp();
        float own[kEdge], of_probability[kEdge];
        tile.read(own);
        slope_tile.read(of_probability);
        const std::int64_t first_key = key + Tile::own_column();
#pragma unroll
        for (int i = 0; i < kEdge; ++i) {
          float probability;
          slopes_of(scores_of(first_key + i, own[i]), kept(first_key + i, of_probability[i]), probability, own[i]);
        }
        __syncwarp();
        tile.write(own);
        __syncwarp();
        add_products(tile, keys, sums);
      }
      store_sums(sums, tile, dq.of_head(head), first + Block::own_row(), operands.scale);
    }
  }
}

/// A block owns keys, whose heads of q follow one another. There may be no dk or dv.
template <class T, int Width>
__global__ void __launch_bounds__(TileBlock<Width>::kThreads)
    attention_tiles_dk_dv(AttentionOperands<T> operands, Slopes<T> slopes, AllHeads<T> dk, AllHeads<T> dv) {
  if constexpr (Multiplied<T>) {
    using Block = TileBlock<Width>;
    using Keys = SharedRows<T, Block::kRows, Width>;
    using Queries = SharedRows<T, kColumns, Width>;
    using Tile = WarpTile<T, kColumns, kEdge>;
    __shared__ Keys keys, values;
    __shared__ Queries queries, slopes_of_out;
    __shared__ Tile tiles[Block::kWarps], slope_tiles[Block::kWarps];
    Tile &tile = tiles[Block::warp()], &slope_tile = slope_tiles[Block::warp()];
    const std::int64_t blocks = Block::blocks_of(operands.k.count);
    const std::int64_t kv_heads = operands.batch * operands.heads / operands.sharing;
    for (std::int64_t task = blockIdx.x; task < kv_heads * blocks; task += gridDim.x) {
      const std::int64_t kv_head = task / blocks;
      const std::int64_t first = task % blocks * Block::kRows;
      const std::int64_t own_key = first + Block::own_row();
      const HeadRows<const T> k = operands.k.of_head(kv_head), v = operands.v.of_head(kv_head);
      Sums of_k[Width / kEdge], of_v[Width / kEdge];
      clear_sums(of_k);
      clear_sums(of_v);
      __syncthreads();  // before the tiles of the last task are written over
      load_rows(keys, k, first);
      load_rows(values, v, first);
      float factor = 0;
      for (std::int64_t head = kv_head * operands.sharing; head < (kv_head + 1) * operands.sharing; ++head) {
        const HeadRows<const T> q = operands.q_of(head), dout = slopes.dout.of_head(head);
        for (std::int64_t query = operands.causal ? first : 0; query < q.count; query += kColumns) {
          __syncthreads();
          load_rows(queries, q, query);
          load_rows(slopes_of_out, dout, query);
          __syncthreads();
          multiply_rows(queries, 0, keys, Block::own_row(), tile);
          multiply_rows(slopes_of_out, 0, values, Block::own_row(), slope_tile);
          __syncwarp();
          float own[kEdge], of_probability[kEdge];
          tile.read(own);
          slope_tile.read(of_probability);
          const std::int64_t own_query = query + Tile::own_row();
          const QueryScores<T> scores_of = operands.scores_of(head, own_query);
          const typename Slopes<T>::OfQuery slopes_of = slopes.of(head, own_query);
          KeptKeys kept = operands.kept_by(head, own_query);
          factor = kept.factor();
#pragma unroll
          for (int i = 0; i < kEdge; ++i) {
            const std::int64_t key = own_key + i;
            float probability, slope;
            slopes_of(scores_of(key, own[i]), kept(key, of_probability[i]), probability, slope);
            own[i] = kept.keeps(key) ? probability : 0.0f;
            of_probability[i] = slope;
          }
          __syncwarp();
          tile.write(own);
          slope_tile.write(of_probability);
          __syncwarp();
          if (dv.data != nullptr) add_products(tile, slopes_of_out, of_v);
          if (dk.data != nullptr) add_products(slope_tile, queries, of_k);
        }
      }
      if (dk.data != nullptr) store_sums(of_k, tile, dk.of_head(kv_head), own_key, operands.scale);
      if (dv.data != nullptr) store_sums(of_v, tile, dv.of_head(kv_head), own_key, factor);
    }
  }
}

}  // namespace

void attention_backward_by_tiles(const checks::AttentionExtents& extents, const Heads& q, const Heads& k,
                                 const Heads& v, const AttentionScores& scores, const Heads& result,
                                 const Tensor& norms, const Heads& dout, const Heads& dq, const Heads& dk,
                                 const Heads& dv) {
  const Device device = q.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const Tensor delta = attention_deltas(result, dout);
  visit_tiles(q.dtype(), extents, [&]<class T, int Width>() {
    using Block = TileBlock<Width>;
    const auto operands = operands_of<T>(extents, q, k, v, scores);
    const Slopes<T> slopes{read_heads<T>(dout), in<float>(norms), in<float>(delta)};
    if (dq.defined() && dq.numel() > 0) {
      const std::int64_t blocks = extents.batch * extents.heads * Block::blocks_of(extents.queries);
      attention_tiles_dq<T, Width>
          <<<blocks_for(blocks, 1), Block::kThreads, 0, stream>>>(operands, slopes, written_heads<T>(dq));
      check_launch("attention_backward, dq");
    }
    if ((dk.defined() && dk.numel() > 0) || (dv.defined() && dv.numel() > 0)) {
      const std::int64_t blocks = extents.batch * extents.kv_heads * Block::blocks_of(extents.keys);
      attention_tiles_dk_dv<T, Width><<<blocks_for(blocks, 1), Block::kThreads, 0, stream>>>(
          operands, slopes, written_heads<T>(dk), written_heads<T>(dv));
      check_launch("attention_backward, dk and dv");
    }
  });
}

}  // namespace lockstep::kernels::cuda
