// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/embedding.h"

#include "runtime/ops/embedding.h"

namespace lockstep::nn {

Embedding::Embedding(std::int64_t rows, std::int64_t width, std::optional<std::int64_t> padding_index)
    : padding_index_(padding_index),
      weight_(add_parameter("weight", {rows, width}, ParameterKind::kWeight, Initializer::normal(1.0))) {}

Tensor Embedding::forward(const Tensor& indices) { return ops::embedding(weight_, indices, padding_index_); }

}  // namespace lockstep::nn
