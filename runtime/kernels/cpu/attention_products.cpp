// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/attention_products.h"

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/kernels/assign.h"
#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/isa.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/cpu/threads.h"
#include "runtime/kernels/matmul.h"

namespace lockstep::kernels::cpu {

namespace {

/// Queries whose products with all keys are computed at a time: few, so that causal ones are multiplied with few keys
/// that they do not see, and so many that the keys are worth bringing into a product's layout. Fewer where the keys are
/// so many that their products would take much memory.
std::int64_t queries_at_a_time(const checks::AttentionExtents& extents) {
  constexpr std::int64_t kProducts = std::int64_t{1} << 20;
  return extents.keys < 512 ? 64 : std::clamp<std::int64_t>(kProducts / extents.keys, 16, 128);
}

/// The first exception of any thread: none may leave a parallel region.
class Failure {
 public:
  template <class F>
  void guard(F f) noexcept {
    try {
      f();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!first_) first_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

/// Calls run(begin, end) for ranges of tasks of so many multiply-adds, on the threads that they are worth.
template <class Run>
void for_tasks(std::int64_t tasks, std::int64_t products, Run run) {
  Failure failure;
  parallel_ranges(tasks, AttentionHeads::kProductsAThread / (products + 1) + 1,
                  [&](std::int64_t begin, std::int64_t end) {
                    failure.guard([&] {
                      // Beside others a thread's products are its own, and planned so, whatever their size.
                      std::optional<ThreadsFor> alone;
                      if (omp_in_parallel() != 0) alone.emplace(0);
                      run(begin, end);
                    });
                  });
  failure.rethrow();
}

/// Numbers that a thread uses again for every task, as matrices of any shape that fits.
class Room {
 public:
  Room(std::int64_t elements, DType dtype) : elements_(Tensor::empty({elements}, dtype)) {}

  Tensor matrix(std::int64_t rows, std::int64_t columns) const {
    return elements_.detach_rows(0, rows * columns).detach(Shape{rows, columns});
  }
  float* floats() const { return static_cast<float*>(elements_.data()); }

 private:
  Tensor elements_;
};

/// Matrices of a head's rows [first, first + count): where they lie, or, where rows lie apart, beside them in memory of
/// a thread's own.
class HeadMatrices {
 public:
  /// For `most` rows at a time. Undefined heads are not asked for.
  HeadMatrices(const Heads& heads, std::int64_t most) : heads_(heads) {
    if (heads.defined() && !heads.is_dense()) room_.emplace(most * heads.size(3), heads.dtype());
  }

  Tensor read(std::int64_t head, std::int64_t first, std::int64_t count) const {
    if (!room_) return where_they_lie(head, first, count);
    const Tensor matrix = room_->matrix(count, heads_.size(3));
    const InputRows rows = input_rows(heads_, head);
    for (std::int64_t r = 0; r < count; ++r) std::memcpy(at(matrix, r), rows[first + r].data, bytes());
    return matrix;
  }
  /// Calls write(matrix), whose results become those rows.
  template <class Write>
  void fill(std::int64_t head, std::int64_t first, std::int64_t count, Write write) const {
    if (!room_) return write(where_they_lie(head, first, count));
    const Tensor matrix = room_->matrix(count, heads_.size(3));
    write(matrix);
    const OutputRows rows = output_rows(heads_, head, first);
    for (std::int64_t r = 0; r < count; ++r) std::memcpy(rows[r].data, at(matrix, r), bytes());
  }

 private:
  Tensor where_they_lie(std::int64_t head, std::int64_t first, std::int64_t count) const {
    const std::int64_t begin = head * heads_.size(2) + first;
    return heads_.tensor()
        .detach(Shape{heads_.size(0) * heads_.size(1) * heads_.size(2), heads_.size(3)})
        .detach_rows(begin, begin + count);
  }
  std::byte* at(const Tensor& matrix, std::int64_t row) const {
    return static_cast<std::byte*>(matrix.data()) + static_cast<std::size_t>(row) * bytes();
  }
  std::size_t bytes() const { return static_cast<std::size_t>(heads_.size(3)) * size_of(heads_.dtype()); }

  const Heads& heads_;
  std::optional<Room> room_;
};

void multiply(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, bool add, const Tensor& out) {
  kMatrixProducts.matmul(a, transpose_a, b, transpose_b, {}, add, out);
}

float* floats_of(const Tensor& tensor) { return static_cast<float*>(tensor.data()); }

/// The queries of a head, cut into rows that are computed at a time.
class QueryRows {
 public:
  explicit QueryRows(const AttentionHeads& heads)
      : extents_(heads.extents),
        causal_(heads.scores.causal),
        most_(std::min(queries_at_a_time(extents_), extents_.queries)) {}

  std::int64_t count() const { return (extents_.queries + most_ - 1) / most_; }
  /// How many queries a part has at most.
  std::int64_t most() const { return most_; }
  /// How many products one part has at most: its queries, each with all keys.
  std::int64_t products() const { return most_ * extents_.keys; }
  AttentionRows operator[](std::int64_t i) const {
    const std::int64_t first = i * most_, end = std::min(extents_.queries, first + most_);
    if (!causal_) return {first, end - first, extents_.keys};
    // Keys that these queries do not see come with them, so that a head has products of eight shapes at most.
    const std::int64_t step = std::max(most_, (extents_.keys + 7) / 8);
    return {first, end - first, std::min(extents_.keys, (end + step - 1) / step * step)};
  }

 private:
  checks::AttentionExtents extents_;
  bool causal_;
  std::int64_t most_;
};

/// float32 sums for a gradient in its own dtype; none for an undefined one.
Tensor sums_for(const Heads& gradient, std::int64_t rows) {
  return gradient.defined() ? Tensor::empty({rows, gradient.size(3)}, DType::kFloat32) : Tensor();
}

}  // namespace

bool attention_by_products(DType dtype, const checks::AttentionExtents& extents) {
  constexpr std::int64_t kRows = 64, kChannels = 32;
  return dtype == DType::kBFloat16 && has_native_bfloat16() && std::min(extents.queries, extents.keys) >= kRows &&
         std::min(extents.channels, extents.value_channels) >= kChannels;
}

void attention_forward_by_products(const AttentionHeads& heads, const Heads& out, const Tensor& norms) {
  const checks::AttentionExtents& e = heads.extents;
  const QueryRows parts(heads);
  const std::int64_t of_task = parts.products() * (e.channels + e.value_channels);
  for_tasks(heads.count() * parts.count(), of_task, [&](auto begin, auto end) {
    const Room for_products(parts.products(), DType::kFloat32), for_probabilities(parts.products(), out.dtype());
    const Room room(AttentionRows::room(e.keys, e.value_channels), DType::kFloat32);
    const HeadMatrices q(heads.q, parts.most()), k(heads.k, e.keys), v(heads.v, e.keys), results(out, parts.most());
    std::int64_t read = -1;
    Tensor keys, values;  // of the head of k and v that was read last
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t h = task / parts.count(), kv = heads.kv_head(h);
      const AttentionRows rows = parts[task % parts.count()];
      if (std::exchange(read, kv) != kv) {
        keys = k.read(kv, 0, e.keys);
        values = v.read(kv, 0, e.keys);
      }
      const Tensor products = for_products.matrix(rows.count, rows.keys);
      const Tensor probabilities = for_probabilities.matrix(rows.count, rows.keys);
      multiply(q.read(h, rows.first, rows.count), false, keys.detach_rows(0, rows.keys), true, false, products);
      loops().attention_rows(heads[h], rows, floats_of(products), output(probabilities),
                             floats_of(norms) + 2 * (h * e.queries + rows.first), room.floats());
      results.fill(h, rows.first, rows.count, [&](const Tensor& of_queries) {
        multiply(probabilities, false, values.detach_rows(0, rows.keys), false, false, of_queries);
      });
    }
  });
}

void attention_backward_by_products(const AttentionHeads& heads, const Heads& out, const Tensor& norms,
                                    const Heads& dout, const Heads& dq, const Heads& dk, const Heads& dv) {
  const checks::AttentionExtents& e = heads.extents;
  const QueryRows parts(heads);
  const std::int64_t sharing = e.heads / std::max<std::int64_t>(e.kv_heads, 1);
  // A thread has a head of k and v with all heads of q that share it, so that sums have one order.
  const std::int64_t of_task = sharing * e.queries * e.keys * (e.channels + e.value_channels);
  for_tasks(e.batch * e.kv_heads, of_task, [&](auto begin, auto end) {
    const std::int64_t most = parts.products();
    const Room for_products(most, DType::kFloat32), for_slopes_of_probabilities(most, DType::kFloat32);
    const Room for_probabilities(most, out.dtype()), for_slopes(most, out.dtype());
    const Room room(AttentionRows::room(e.keys, e.value_channels), DType::kFloat32);
    const HeadMatrices queries(heads.q, parts.most()), results(out, parts.most()),
        slopes_of_results(dout, parts.most());
    const HeadMatrices keys(heads.k, e.keys), values(heads.v, e.keys);
    const HeadMatrices slopes_of_queries(dq, parts.most()), slopes_of_keys(dk, e.keys), slopes_of_values(dv, e.keys);
    const Tensor of_k = sums_for(dk, e.keys), of_v = sums_for(dv, e.keys);
    for (std::int64_t kv = begin; kv < end; ++kv) {
      if (of_k.defined()) fill(of_k, 0);
      if (of_v.defined()) fill(of_v, 0);
      const Tensor all_keys = keys.read(kv, 0, e.keys), all_values = values.read(kv, 0, e.keys);
      for (std::int64_t h = kv * sharing; h < (kv + 1) * sharing; ++h) {
        for (std::int64_t i = 0; i < parts.count(); ++i) {
          const AttentionRows rows = parts[i];
          const Tensor products = for_products.matrix(rows.count, rows.keys);
          const Tensor of_probabilities = for_slopes_of_probabilities.matrix(rows.count, rows.keys);
          const Tensor probabilities = for_probabilities.matrix(rows.count, rows.keys);
          const Tensor slopes = for_slopes.matrix(rows.count, rows.keys);
          const Tensor q = queries.read(h, rows.first, rows.count);
          const Tensor slope = slopes_of_results.read(h, rows.first, rows.count);
          const Tensor k = all_keys.detach_rows(0, rows.keys), v = all_values.detach_rows(0, rows.keys);
          multiply(q, false, k, true, false, products);
          multiply(slope, false, v, true, false, of_probabilities);
          loops().attention_rows_backward(heads[h], rows,
                                          {.out = input(results.read(h, rows.first, rows.count)),
                                           .dout = input(slope),
                                           .norms = floats_of(norms) + 2 * (h * e.queries + rows.first),
                                           .probabilities = floats_of(of_probabilities)},
                                          floats_of(products), output(probabilities), output(slopes), room.floats());
          if (of_v.defined()) multiply(probabilities, true, slope, false, true, of_v.detach_rows(0, rows.keys));
          if (of_k.defined()) multiply(slopes, true, q, false, true, of_k.detach_rows(0, rows.keys));
          if (!dq.defined()) continue;
          slopes_of_queries.fill(h, rows.first, rows.count,
                                 [&](const Tensor& of_q) { multiply(slopes, false, k, false, false, of_q); });
        }
      }
      if (of_k.defined()) slopes_of_keys.fill(kv, 0, e.keys, [&](const Tensor& matrix) { cast(of_k, matrix); });
      if (of_v.defined()) slopes_of_values.fill(kv, 0, e.keys, [&](const Tensor& matrix) { cast(of_v, matrix); });
    }
  });
}

}  // namespace lockstep::kernels::cpu
