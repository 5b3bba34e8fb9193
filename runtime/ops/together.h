// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/ops/dims.h"

namespace lockstep::ops {

/// x with the marked dimensions brought together, as [outer, n, inner]: a view where they are neighbours, else a
/// permuted copy. The other dimensions keep their order. In the graph.
[[nodiscard]] Tensor together(const Tensor& x, const DimSet& dims);

/// [outer, inner] from together(), or anything with as many elements, spread over [outer, n, inner]. In the graph.
[[nodiscard]] Tensor spread(const Tensor& reduced, const Shape& shape);

}  // namespace lockstep::ops
