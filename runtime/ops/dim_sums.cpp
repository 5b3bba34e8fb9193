// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/dim_sums.h"

#include "runtime/kernels/dim_reductions.h"
#include "runtime/kernels/reductions.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

using kernels::Term;

Tensor sum_over(const Tensor& x, const DimSet& dims, Term term, double factor, DType dtype) {
  const kernels::Reductions& reductions = kernels::Reductions::on(x.device());
  const kernels::DimReductions& dim_reductions = kernels::DimReductions::on(x.device());
  const Shape& shape = x.shape();
  const Shape result = reduced_shape(shape, dims, true);
  if (result.numel() == 1 && term == Term::kValue) {
    const Tensor out = Tensor::empty(result, dtype, x.device());
    reductions.sum(x, factor, out);
    return out;
  }
  // Neighbouring dimensions are summed over at once, the last ones first; sums between stay wide.
  const DType wide = wide_of(x.dtype());
  Tensor sums = x;
  Shape now = shape;
  const auto marked = [&](int d) { return dims[static_cast<std::size_t>(d)] || now[d] == 1; };
  int behind = shape.rank();
  do {
    while (behind > 0 && (!marked(behind - 1) || now[behind - 1] == 1)) --behind;
    int first = behind;
    std::int64_t n = 1, outer = 1, inner = 1;
    while (first > 0 && marked(first - 1)) n *= now[--first];
    for (int d = 0; d < first; ++d) outer *= now[d];
    for (int d = behind; d < shape.rank(); ++d) inner *= now[d];
    for (int d = first; d < behind; ++d) now = now.with(d, 1);
    behind = first;
    const bool last = now == result;
    const Tensor out = Tensor::empty({outer, inner}, last ? dtype : wide, x.device());
    dim_reductions.sum_dim(sums.detach({outer, n, inner}), term, last ? factor : 1.0, out);
    sums = out.detach(now);
    term = Term::kValue;
  } while (now != result);
  return sums;
}

}  // namespace lockstep::ops
