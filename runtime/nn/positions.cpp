// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/positions.h"

#include <string>

#include "runtime/base/error.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/movement.h"

namespace lockstep::nn {

LearnedPositions::LearnedPositions(std::int64_t context, std::int64_t width)
    : weight_(add_parameter("weight", {context, width}, ParameterKind::kWeight, Initializer::normal(0.02))) {}

Tensor LearnedPositions::forward(const Tensor& x, std::int64_t first) { return ops::add(x, rows(x.size(-2), first)); }

Tensor LearnedPositions::rows(std::int64_t length, std::int64_t first) {
  const std::int64_t context = weight_.size(0);
  if (first < 0 || first + length > context) {
    throw ShapeError("positions " + std::to_string(first) + " to " + std::to_string(first + length) +
                     " of a context of " + std::to_string(context));
  }
  return length == context ? weight_ : ops::slice(weight_, 0, first, first + length);
}

}  // namespace lockstep::nn
