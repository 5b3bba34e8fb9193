// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/nn/module.h"

namespace lockstep::nn {

/// int64 indices [...] -> [..., width]: the rows of weight [rows, width] that they name, ops::embedding. Rows start
/// normal with deviation 1, as PyTorch's; row `padding_index` too, where PyTorch's is zero: it gets no gradient.
class Embedding : public Module {
 public:
  Embedding(std::int64_t rows, std::int64_t width, std::optional<std::int64_t> padding_index = {});
  Tensor forward(const Tensor& indices) override;

 private:
  std::optional<std::int64_t> padding_index_;
  Tensor weight_;
};

}  // namespace lockstep::nn
