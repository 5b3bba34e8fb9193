// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/geometry/structure_checks.h"

#include <algorithm>
#include <string>

#include "runtime/base/error.h"
#include "runtime/kernels/geometry/check.h"

namespace lockstep::kernels::checks {

namespace {

/// Whether all places of a walk lie in `numel` elements.
bool inside(const Walk& walk, const Shape& extents, std::int64_t numel) {
  std::int64_t first = walk.offset;
  std::int64_t last = walk.offset;
  for (int d = 0; d < extents.rank(); ++d) {
    const std::int64_t reach = (extents[d] - 1) * walk.strides[static_cast<std::size_t>(d)];
    (reach < 0 ? first : last) += reach;
  }
  return first >= 0 && last < numel;
}

Middle middle(const Check& check, std::string_view name, const Tensor& x) {
  check.defined(name, x);
  check.that(x.shape().rank() == 3,
             [&] { return std::string(name) + " must be [outer, n, inner], found " + describe(x); });
  return {x.size(0), x.size(1), x.size(2)};
}

}  // namespace

void copy_strided(const Tensor& in, const Walk& from, const Shape& extents, const Tensor& out, const Walk& to) {
  const Check check("copy_strided");
  check.defined("in", in).dtype("out", out, in.dtype());
  if (extents.numel() == 0) return;
  for (int d = 0; d < extents.rank(); ++d) {
    check.that(extents[d] == 1 || to.strides[static_cast<std::size_t>(d)] > 0, "out's strides must be positive");
  }
  const auto leaves = [&](std::string_view name, const Tensor& tensor) {
    return "the walk over " + extents.str() + " leaves " + std::string(name) + " " + describe(tensor);
  };
  check.that(inside(from, extents, in.numel()), [&] { return leaves("in", in); });
  check.that(inside(to, extents, out.numel()), [&] { return leaves("out", out); });
}

Middle sum_dim(const Tensor& x, const Tensor& out) {
  const Check check("sum_dim");
  const Middle extents = middle(check, "x", x);
  check.floating("x", x).floating("out", out).shape("out", out, {extents.outer, extents.inner});
  return extents;
}

Middle softmax_middle(const Tensor& x, const Tensor& y) {
  const Check check("softmax_middle");
  const Middle extents = middle(check, "x", x);
  check.floating("x", x).like("y", y, x);
  return extents;
}

Middle softmax_middle_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) {
  const Check check("softmax_middle_backward");
  const Middle extents = middle(check, "y", y);
  check.floating("y", y).like("dy", dy, y).like("dx", dx, y);
  return extents;
}

Middle variance_dim(const Tensor& x, const Tensor& variance) {
  const Check check("variance_dim");
  const Middle extents = middle(check, "x", x);
  check.floating("x", x).floating("variance", variance).shape("variance", variance, {extents.outer, extents.inner});
  return extents;
}

Middle extreme_dim(const Tensor& x, const Tensor& values, const Tensor& indices) {
  const Check check("extreme_dim");
  const Middle extents = middle(check, "x", x);
  check.floating("x", x).that(extents.n > 0 || x.numel() > 0 || extents.outer * extents.inner == 0,
                              [&] { return "there is no extreme of no elements, found " + describe(x); });
  const Shape shape{extents.outer, extents.inner};
  if (values.defined()) check.dtype("values", values, x.dtype()).shape("values", values, shape);
  if (indices.defined()) check.dtype("indices", indices, DType::kInt64).shape("indices", indices, shape);
  return extents;
}

Middle extreme_shares(const Tensor& x, const Tensor& extremes, const Tensor& shares) {
  const Check check("extreme_shares");
  const Middle extents = middle(check, "x", x);
  check.floating("x", x).dtype("extremes", extremes, x.dtype());
  check.shape("extremes", extremes, {extents.outer, extents.inner}).like("shares", shares, x);
  return extents;
}

Middle order(const Tensor& x, const Tensor& indices) {
  const Check check("order");
  const Middle extents = middle(check, "x", x);
  const Middle first = middle(check, "indices", indices);
  check.dtype("indices", indices, DType::kInt64)
      .that(first.outer == extents.outer && first.n <= extents.n && first.inner == extents.inner, [&] {
        return "indices " + indices.shape().str() + " may differ from x " + x.shape().str() +
               " in the middle alone, where they are fewer";
      });
  return extents;
}

Middle scan(const Tensor& a, const Tensor& b, const Tensor& y) {
  const Check check("scan");
  const Middle extents = middle(check, "y", y);
  check.floating("y", y).that(a.defined() || b.defined(), "a or b must be defined");
  if (a.defined()) check.like("a", a, y);
  if (b.defined()) check.like("b", b, y);
  return extents;
}

Picking picking(std::string_view operation, const Tensor& whole, const Tensor& indices, const Tensor& picked) {
  const Check check(operation);
  const Middle from = middle(check, "the whole", whole);
  const Middle to = middle(check, "the part", picked);
  check.dtype("the part", picked, whole.dtype()).dtype("indices", indices, DType::kInt64);
  check.that(from.outer == to.outer && from.inner == to.inner, [&] {
    return "the whole " + whole.shape().str() + " and the part " + picked.shape().str() +
           " may differ in the middle alone";
  });
  const bool own = indices.shape() == picked.shape();
  check.that(own || indices.shape() == Shape{to.n}, [&] {
    return "indices must be [" + std::to_string(to.n) + "] or " + picked.shape().str() + ", found " + describe(indices);
  });
  return {from.outer, from.n, to.n, from.inner, own};
}

std::int64_t first_outside(std::span<const std::int64_t> indices, std::int64_t n) {
  // An index is outside where it or last - index is negative. Every processor has vector instructions to find that.
  std::uint64_t signs = 0;
  const auto last = static_cast<std::uint64_t>(n) - 1;
  for (const std::int64_t index : indices) {
    const auto value = static_cast<std::uint64_t>(index);
    signs |= value | (last - value);
  }
  if (signs >> 63 == 0) return -1;
  return std::ranges::find_if(indices, [n](std::int64_t index) { return index < 0 || index >= n; }) - indices.begin();
}

void indices_in_range(std::string_view operation, const Tensor& indices, std::int64_t n) {
  const std::span all(static_cast<const std::int64_t*>(indices.data()), static_cast<std::size_t>(indices.numel()));
  const std::int64_t at = first_outside(all, n);
  if (at < 0) return;
  throw UsageError(std::string(operation) + ": index " + std::to_string(at) + " is " +
                   std::to_string(all[static_cast<std::size_t>(at)]) + ", outside [0, " + std::to_string(n) + ")");
}

}  // namespace lockstep::kernels::checks
