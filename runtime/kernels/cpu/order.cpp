// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>

#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/cpu/thread_buffers.h"
#include "runtime/kernels/functors/sort_key.h"
#include "runtime/kernels/functors/visit_dtype.h"
#include "runtime/kernels/geometry/structure_checks.h"

namespace lockstep::kernels::cpu {

namespace {

/// An element's key and place as one number: a sort of these is stable.
struct Packed {
  std::uint64_t bits;

  Packed(std::uint64_t key, std::int64_t place) : bits(key << 32 | static_cast<std::uint64_t>(place)) {}
  std::int64_t place() const { return static_cast<std::int64_t>(bits & 0xffffffffu); }
  auto operator<=>(const Packed&) const = default;
};

/// An element's key and place where 64 bits do not hold both: elements of 8 bytes, lines of 2^32 elements and more.
struct Pair {
  std::uint64_t key;
  std::int64_t where;

  Pair(std::uint64_t sort_key, std::int64_t place) : key(sort_key), where(place) {}
  std::int64_t place() const { return where; }
  auto operator<=>(const Pair&) const = default;
};

/// The k first of n entries at the front of the buffer, in order; `entry(at)` makes them, in the order of their places.
template <class Entry, class F>
void sort_first(Entry* buffer, std::int64_t n, std::int64_t k, F entry) {
  // A heap of the k first elements so far. With a small k, few of the others enter it.
  if (k < n / 16) {
    for (std::int64_t at = 0; at < k; ++at) buffer[at] = entry(at);
    std::make_heap(buffer, buffer + k);
    for (std::int64_t at = k; at < n; ++at) {
      const Entry next = entry(at);
      if (!(next < *buffer)) continue;
      std::pop_heap(buffer, buffer + k);
      buffer[k - 1] = next;
      std::push_heap(buffer, buffer + k);
    }
    std::sort_heap(buffer, buffer + k);
    return;
  }
  for (std::int64_t at = 0; at < n; ++at) buffer[at] = entry(at);
  if (k < n) std::nth_element(buffer, buffer + k, buffer + n);
  std::sort(buffer, buffer + k);
}

template <class Entry, class T>
void order_lines(const checks::Middle& x, const T* values, bool descending, std::int64_t k, std::int64_t* indices) {
  const ThreadBuffers buffers(x.n * static_cast<std::int64_t>(sizeof(Entry) / sizeof(float)));
  parallel_rows(x.outer * x.inner, x.n, [&](std::int64_t first, std::int64_t count) {
    auto* const entries = reinterpret_cast<Entry*>(buffers.mine());
    for (std::int64_t line = first; line < first + count; ++line) {
      const std::int64_t o = line / x.inner, i = line % x.inner;
      const T* const elements = values + o * x.n * x.inner + i;
      sort_first(entries, x.n, k,
                 [&](std::int64_t at) { return Entry(sort_key(elements[at * x.inner], descending), at); });
      for (std::int64_t r = 0; r < k; ++r) indices[(o * k + r) * x.inner + i] = entries[r].place();
    }
  });
}

}  // namespace

/// Indexing::order
void order(const Tensor& x, bool descending, const Tensor& indices) {
  const checks::Middle extents = checks::order(x, indices);
  if (indices.numel() == 0) return;
  const std::int64_t k = indices.size(1);
  auto* const out = static_cast<std::int64_t*>(indices.data());
  visit_dtype(x.dtype(), [&]<class T>() {
    const auto* const values = static_cast<const T*>(x.data());
    if (sizeof(T) <= 4 && extents.n <= std::numeric_limits<std::uint32_t>::max()) {
      order_lines<Packed>(extents, values, descending, k, out);
    } else {
      order_lines<Pair>(extents, values, descending, k, out);
    }
  });
}

}  // namespace lockstep::kernels::cpu
