// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/attention.h"

#include <algorithm>
#include <atomic>

#include "runtime/kernels/cpu/attention_heads.h"
#include "runtime/kernels/cpu/attention_products.h"
#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/cpu/threads.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

/// Scratch memory for as many threads as share `tasks`: it does not grow with the number of queries.
class Scratch {
 public:
  Scratch(std::int64_t tasks, std::int64_t floats)
      : floats_((floats + 15) / 16 * 16),
        memory_(Tensor::empty({std::min<std::int64_t>(threads(), tasks), floats_}, DType::kFloat32)) {}
  /// A thread's part, for a range of tasks.
  float* claim() { return static_cast<float*>(memory_.data()) + claimed_.fetch_add(1) * floats_; }

 private:
  std::int64_t floats_;
  Tensor memory_;
  std::atomic<std::int64_t> claimed_ = 0;
};

void attention(const Heads& q, const Heads& k, const Heads& v, const AttentionScores& scores, const Heads& out,
               const Tensor& norms) {
  const checks::AttentionExtents extents = checks::attention(q, k, v, scores, out, norms);
  if (!is_fast(q.tensor())) return reference::kAttention.attention(q, k, v, scores, out, norms);
  const AttentionHeads heads{.q = q, .k = k, .v = v, .scores = scores, .extents = extents};
  if (attention_by_products(q.dtype(), extents)) return attention_forward_by_products(heads, out, norms);
  constexpr std::int64_t kQueries = AttentionHead::kQueries;
  const std::int64_t blocks = (extents.queries + kQueries - 1) / kQueries;
  const std::int64_t tasks = heads.count() * blocks;
  Scratch scratch(tasks, AttentionHead::scratch(extents.channels, extents.value_channels));
  const std::int64_t of_block = kQueries * extents.keys * (extents.channels + extents.value_channels);
  parallel_ranges(
      tasks, AttentionHeads::kProductsAThread / (of_block + 1) + 1, [&](std::int64_t begin, std::int64_t end) {
        float* const memory = scratch.claim();
        for (std::int64_t task = begin; task < end; ++task) {
          const std::int64_t h = task / blocks;
          const std::int64_t first = task % blocks * kQueries;
          const std::int64_t row = h * extents.queries + first;
          loops().attention(heads[h], first, std::min(kQueries, extents.queries - first), output_rows(out, h, first),
                            static_cast<float*>(norms.data()) + 2 * row, memory);
        }
      });
}

/// float32 sums [rows, columns padded to whole vectors] for a head of a result in its own dtype.
class PaddedSums {
 public:
  static std::int64_t floats(std::int64_t rows, std::int64_t columns) { return rows * width(columns); }

  PaddedSums(const Heads& result, std::int64_t head, float* sums, std::int64_t rows, std::int64_t columns)
      : result_(output_rows(result, head)), sums_(result.defined() ? sums : nullptr), rows_(rows), columns_(columns) {
    if (sums_ != nullptr) std::fill_n(sums_, floats(rows, columns), 0.0f);
  }
  float* data() const { return sums_; }
  /// Rounds them into the result.
  void store() const {
    if (sums_ == nullptr) return;
    const Input sums{sums_, DType::kFloat32};
    for (std::int64_t r = 0; r < rows_; ++r) loops().convert(sums.from(r * width(columns_)), result_[r], columns_);
  }

 private:
  static std::int64_t width(std::int64_t columns) { return (columns + 15) / 16 * 16; }

  OutputRows result_;
  float* sums_;
  std::int64_t rows_;
  std::int64_t columns_;
};

void attention_backward(const Heads& q, const Heads& k, const Heads& v, const AttentionScores& scores, const Heads& out,
                        const Tensor& norms, const Heads& dout, const Heads& dq, const Heads& dk, const Heads& dv) {
  const checks::AttentionExtents extents = checks::attention_backward(q, k, v, scores, out, norms, dout, dq, dk, dv);
  if (!is_fast(q.tensor())) {
    return reference::kAttention.attention_backward(q, k, v, scores, out, norms, dout, dq, dk, dv);
  }
  const AttentionHeads heads{.q = q, .k = k, .v = v, .scores = scores, .extents = extents};
  if (attention_by_products(q.dtype(), extents)) {
    return attention_backward_by_products(heads, out, norms, dout, dq, dk, dv);
  }
  const std::int64_t of_dk = PaddedSums::floats(extents.keys, extents.channels);
  const std::int64_t of_dv = PaddedSums::floats(extents.keys, extents.value_channels);
  const std::int64_t tasks = extents.batch * extents.kv_heads;
  Scratch scratch(tasks, AttentionHead::scratch(extents.channels, extents.value_channels) + of_dk + of_dv);
  const std::int64_t sharing = extents.heads / std::max<std::int64_t>(extents.kv_heads, 1);
  // A thread has a head of k and v with all heads of q that share it, so that sums have one order.
  const std::int64_t of_task = sharing * extents.queries * extents.keys * (extents.channels + extents.value_channels);
  parallel_ranges(
      tasks, AttentionHeads::kProductsAThread / (of_task + 1) + 1, [&](std::int64_t begin, std::int64_t end) {
        float* const memory = scratch.claim();
        for (std::int64_t kv = begin; kv < end; ++kv) {
          const PaddedSums sums_dk(dk, kv, memory, extents.keys, extents.channels);
          const PaddedSums sums_dv(dv, kv, memory + of_dk, extents.keys, extents.value_channels);
          for (std::int64_t h = kv * sharing; h < (kv + 1) * sharing; ++h) {
            loops().attention_backward(heads[h],
                                       {.out = input_rows(out, h),
                                        .dout = input_rows(dout, h),
                                        .norms = static_cast<const float*>(norms.data()) + 2 * h * extents.queries,
                                        .dq = output_rows(dq, h),
                                        .dk = sums_dk.data(),
                                        .dv = sums_dv.data()},
                                       memory + of_dk + of_dv);
          }
          sums_dk.store();
          sums_dv.store();
        }
      });
}

}  // namespace

const Attention kAttention{.attention = attention, .attention_backward = attention_backward};

}  // namespace lockstep::kernels::cpu
