// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// out = the sum of x over whatever broadcasting `out` to x's shape repeats, added to out where `accumulate`. Outside
/// the graph; in a fixed order. Throws ShapeError where out does not broadcast to x's shape.
void sum_broadcast(const Tensor& x, bool accumulate, const Tensor& out);
/// sum_broadcast() of a * b, where b may be broadcast to a's shape. a and b have one floating dtype; products of 16-bit
/// numbers are not rounded before they are added.
void sum_of_products(const Tensor& a, const Tensor& b, bool accumulate, const Tensor& out);

}  // namespace lockstep::ops
