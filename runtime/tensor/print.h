// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include "runtime/tensor/tensor.h"

namespace lockstep {

/// The elements as PyTorch prints a tensor: "tensor([[1.0000, 2.5000]])", in lines of at most 80 columns. Of more than
/// 1,000 elements the first and the last three along each dimension. dtype and device stand behind them where they are
/// not float32, int64, bool and the CPU. Waits for the device where the tensor lies on one.
[[nodiscard]] std::string to_text(const Tensor& tensor);

/// Writes to_text(); "an undefined tensor" for one.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace lockstep
