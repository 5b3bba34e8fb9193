// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/nn/module.h"

namespace lockstep::nn {

/// Adds a learned vector a position: x [N, T, width] plus rows of weight [context, width].
class LearnedPositions : public Module {
 public:
  LearnedPositions(std::int64_t context, std::int64_t width);
  Tensor forward(const Tensor& x) override { return forward(x, 0); }
  /// x is of positions first, ..., first + T - 1. Throws ShapeError beyond the context.
  Tensor forward(const Tensor& x, std::int64_t first);
  /// [length, width]: the vectors of positions first and on. Throws ShapeError beyond the context.
  Tensor rows(std::int64_t length, std::int64_t first = 0);

 private:
  Tensor weight_;
};

}  // namespace lockstep::nn
