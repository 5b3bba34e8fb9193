// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/indexing.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "runtime/kernels/functors/visit_dtype.h"
#include "runtime/kernels/geometry/structure_checks.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

/// Calls f(place in the whole, place in the part) for every element of the part, in its order.
template <class F>
void for_each_pick(const checks::Picking& pick, const Tensor& indices, F f) {
  const auto values = indices.as<std::int64_t>();
  for (std::int64_t o = 0; o < pick.outer; ++o) {
    for (std::int64_t k = 0; k < pick.m; ++k) {
      for (std::int64_t i = 0; i < pick.inner; ++i) {
        const std::int64_t index = values[static_cast<std::size_t>(pick.index_at(o, k, i))];
        f(static_cast<std::size_t>((o * pick.n + index) * pick.inner + i),
          static_cast<std::size_t>((o * pick.m + k) * pick.inner + i));
      }
    }
  }
}

void gather(const Tensor& x, const Tensor& indices, const Tensor& out) {
  const checks::Picking pick = checks::picking("gather", x, indices, out);
  checks::indices_in_range("gather", indices, pick.n);
  const std::size_t bytes = size_of(x.dtype());
  for_each_pick(pick, indices, [&](std::size_t whole, std::size_t part) {
    std::memcpy(static_cast<std::byte*>(out.data()) + part * bytes,
                static_cast<const std::byte*>(x.data()) + whole * bytes, bytes);
  });
}

void scatter_add(const Tensor& x, const Tensor& indices, const Tensor& out) {
  const checks::Picking pick = checks::picking("scatter_add", out, indices, x);
  checks::indices_in_range("scatter_add", indices, pick.n);
  const Values values = load(x);
  Values sums(static_cast<std::size_t>(out.numel()), 0.0);
  for_each_pick(pick, indices, [&](std::size_t whole, std::size_t part) { sums[whole] += values[part]; });
  store(sums, out);
}

void scatter(const Tensor& x, const Tensor& indices, const Tensor& out) {
  const checks::Picking pick = checks::picking("scatter", out, indices, x);
  checks::indices_in_range("scatter", indices, pick.n);
  const std::size_t bytes = size_of(x.dtype());
  for_each_pick(pick, indices, [&](std::size_t whole, std::size_t part) {
    std::memcpy(static_cast<std::byte*>(out.data()) + whole * bytes,
                static_cast<const std::byte*>(x.data()) + part * bytes, bytes);
  });
}

template <class T>
bool comes_before(T a, T b, bool descending) {
  if (a != a || b != b) return descending ? b == b : a == a;
  return descending ? a > b : a < b;
}

void order(const Tensor& x, bool descending, const Tensor& indices) {
  const checks::Middle extents = checks::order(x, indices);
  const std::int64_t k = indices.size(1);
  auto* const out = static_cast<std::int64_t*>(indices.data());
  visit_dtype(x.dtype(), [&]<class T>() {
    const auto* const values = static_cast<const T*>(x.data());
    std::vector<std::int64_t> places(static_cast<std::size_t>(extents.n));
    for (std::int64_t line = 0; line < extents.outer * extents.inner; ++line) {
      const std::int64_t o = line / extents.inner, i = line % extents.inner;
      const auto at = [&](std::int64_t place) { return values[(o * extents.n + place) * extents.inner + i]; };
      std::iota(places.begin(), places.end(), 0);
      std::ranges::stable_sort(places,
                               [&](std::int64_t a, std::int64_t b) { return comes_before(at(a), at(b), descending); });
      for (std::int64_t r = 0; r < k; ++r) out[(o * k + r) * extents.inner + i] = places[static_cast<std::size_t>(r)];
    }
  });
}

}  // namespace

const Indexing kIndexing{.gather = gather, .scatter_add = scatter_add, .scatter = scatter, .order = order};

}  // namespace lockstep::kernels::reference
