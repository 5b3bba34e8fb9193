// SPDX-License-Identifier: Apache-2.0
#include "comm/group/shared_memory/wide_sum.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/kernels/assign.h"

namespace lockstep::comm {

namespace {

/// Elements that are widened at a time: those of a few ranks fit into a core's cache, and no other core is asked, which
/// computes the backward pass.
constexpr std::int64_t kPiece = 4096;

template <class F>
void for_each_piece(std::int64_t count, F f) {
  for (std::int64_t begin = 0; begin < count; begin += kPiece) f(begin, std::min(kPiece, count - begin));
}

/// Elements of memory that somebody else keeps.
Tensor view(const void* data, std::int64_t count, DType dtype) {
  const std::size_t bytes = static_cast<std::size_t>(count) * size_of(dtype);
  return Tensor::view(Storage(const_cast<void*>(data), bytes, kCpu, nullptr), 0, {count}, dtype);
}

}  // namespace

void reduce_wide(const Reduction& reduction, std::span<const std::byte* const> sources, std::int64_t count,
                 float* sum) {
  const std::int64_t element = static_cast<std::int64_t>(size_of(reduction.dtype));
  std::vector<float> widened(sources.size() * static_cast<std::size_t>(std::min(kPiece, count)));
  std::vector<const void*> from(sources.size());
  for_each_piece(count, [&](std::int64_t begin, std::int64_t n) {
    for (std::size_t r = 0; r < sources.size(); ++r) {
      float* const own = widened.data() + r * static_cast<std::size_t>(n);
      kernels::cast(view(sources[r] + begin * element, n, reduction.dtype), view(own, n, DType::kFloat32));
      from[r] = own;
    }
    void* const to = sum + begin;
    kernels::rank_reduce(reduction.kind, DType::kFloat32, n, from, reduction.premultiply, reduction.factor, {&to, 1});
  });
}

void round_wide(const float* sum, DType dtype, std::int64_t count, std::span<std::byte* const> outputs) {
  const std::int64_t element = static_cast<std::int64_t>(size_of(dtype));
  for_each_piece(count, [&](std::int64_t begin, std::int64_t n) {
    const std::byte* const first = outputs.front() + begin * element;
    kernels::cast(view(sum + begin, n, DType::kFloat32), view(first, n, dtype));
    for (std::byte* const output : outputs.subspan(1)) {
      std::memcpy(output + begin * element, first, static_cast<std::size_t>(n * element));
    }
  });
}

}  // namespace lockstep::comm
