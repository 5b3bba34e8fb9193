// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/embedding.h"

#include <cstring>
#include <numeric>
#include <vector>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/cpu/thread_buffers.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/geometry/structure_checks.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

std::span<const std::int64_t> checked(const Tensor& indices, std::int64_t rows) {
  const std::span<const std::int64_t> all = indices.as<std::int64_t>();
  const std::int64_t place = checks::first_outside(all, rows);
  if (place >= 0) checks::index_out_of_range(place, all[static_cast<std::size_t>(place)], rows);
  return all;
}

void embedding(const Tensor& weight, const Tensor& indices, std::int64_t skipped, const Tensor& y) {
  checks::embedding(weight, indices, y);
  const std::int64_t* const index = checked(indices, weight.size(0)).data();
  const std::int64_t row_bytes = weight.size(1) * static_cast<std::int64_t>(size_of(weight.dtype()));
  const auto* const from = static_cast<const std::byte*>(weight.data());
  auto* const to = static_cast<std::byte*>(y.data());
  parallel_rows(indices.numel(), weight.size(1), [=](std::int64_t first, std::int64_t rows) {
    loops().pick_lines(from, index + first, row_bytes, rows, to + first * row_bytes);
    if (skipped < 0) return;
    for (std::int64_t place = first; place < first + rows; ++place) {
      if (index[place] == skipped) std::memset(to + place * row_bytes, 0, static_cast<std::size_t>(row_bytes));
    }
  });
}

/// The places of each index, in their order: those of index i are order[begin[i]] up to order[begin[i + 1]].
struct Places {
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> order;

  Places(std::span<const std::int64_t> indices, std::int64_t rows, std::int64_t skipped)
      : begin(static_cast<std::size_t>(rows) + 1, 0), order(indices.size()) {
    for (const std::int64_t index : indices) begin[static_cast<std::size_t>(index) + 1] += index != skipped;
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<std::int64_t> next(begin);
    for (std::size_t place = 0; place < indices.size(); ++place) {
      const auto index = static_cast<std::size_t>(indices[place]);
      if (indices[place] != skipped) order[static_cast<std::size_t>(next[index]++)] = static_cast<std::int64_t>(place);
    }
  }

  std::span<const std::int64_t> of(std::int64_t index) const {
    const auto first = static_cast<std::size_t>(begin[static_cast<std::size_t>(index)]);
    return {order.data() + first, static_cast<std::size_t>(begin[static_cast<std::size_t>(index) + 1]) - first};
  }
  /// The number of places of the indices [first, end).
  std::int64_t count(std::int64_t first, std::int64_t end) const {
    return begin[static_cast<std::size_t>(end)] - begin[static_cast<std::size_t>(first)];
  }
  /// The places of this index and of all greater ones.
  std::span<const std::int64_t> from(std::int64_t index) const {
    return std::span(order).subspan(static_cast<std::size_t>(begin[static_cast<std::size_t>(index)]));
  }
};

/// Rows that are added up in float32; longer sums are sums of such.
constexpr std::size_t kSummed = 256;

/// `sum` [width] = the sum of the rows of dy at `own`, the first of `places`. `part` has room for another such.
void add_up(const Tensor& dy, std::span<const std::int64_t> own, std::span<const std::int64_t> places,
            std::int64_t width, float* sum, float* part) {
  for (std::size_t begin = 0; begin < own.size(); begin += kSummed) {
    const std::size_t count = std::min(kSummed, own.size() - begin);
    loops().sum_picked(input(dy), places.data() + begin, static_cast<std::int64_t>(count),
                       static_cast<std::int64_t>(places.size() - begin), width, begin == 0 ? sum : part);
    if (begin > 0) loops().accumulate({part, DType::kFloat32}, {sum, DType::kFloat32}, width);
  }
}

void embedding_backward(const Tensor& dy, const Tensor& indices, std::int64_t skipped, bool accumulate,
                        const Tensor& dweight) {
  checks::embedding_backward(dy, indices, dweight);
  if (!is_fast(dy) || !is_fast(dweight)) {
    return reference::kEmbedding.embedding_backward(dy, indices, skipped, accumulate, dweight);
  }
  const std::int64_t rows = dweight.size(0), width = dweight.size(1);
  const Places places(checked(indices, rows), rows, skipped);
  const ThreadBuffers buffers(2 * width);
  // A row is one thread's, so that its sum is added up in one order.
  parallel_rows(rows, width, [&](std::int64_t first, std::int64_t count) {
    float* const sum = buffers.mine();
    const auto set_to_zero = [&](std::int64_t row, std::int64_t n) {
      std::memset(output(dweight).from(row * width).data, 0,
                  static_cast<std::size_t>(n * width) * size_of(dweight.dtype()));
    };
    // Where few rows get a sum, one write of zeros to all of them is several times as fast as one to each of the
    // others.
    const bool zeroed = !accumulate && 2 * places.count(first, first + count) < count;
    if (zeroed) set_to_zero(first, count);
    for (std::int64_t index = first; index < first + count; ++index) {
      const std::span<const std::int64_t> own = places.of(index);
      const Output to = output(dweight).from(index * width);
      if (own.empty()) {
        if (!accumulate && !zeroed) set_to_zero(index, 1);
        continue;
      }
      const bool in_place = !accumulate && to.dtype == DType::kFloat32;
      add_up(dy, own, places.from(index), width, in_place ? static_cast<float*>(to.data) : sum, sum + width);
      if (in_place) continue;
      const Input from{sum, DType::kFloat32};
      accumulate ? loops().accumulate(from, to, width) : loops().convert(from, to, width);
    }
  });
}

}  // namespace

const Embedding kEmbedding{.embedding = embedding, .embedding_backward = embedding_backward};

}  // namespace lockstep::kernels::cpu
