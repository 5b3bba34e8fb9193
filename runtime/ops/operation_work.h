// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// The least work that an operation is, from shapes and dtypes alone.
struct OperationWork {
  double operations = 0;  ///< multiplications and additions of products; 0 of an operation that has none
  double bytes = 0;       ///< that it reads and writes

  OperationWork& operator+=(const OperationWork& other) {
    operations += other.operations;
    bytes += other.bytes;
    return *this;
  }
  friend OperationWork operator*(double factor, const OperationWork& work) {
    return {factor * work.operations, factor * work.bytes};
  }
};

/// Of the operation `name` as it hands itself to autograd::record(). It reads its inputs and writes its results once.
/// Products are those of linear, matmul and its kin, conv, conv_transpose, conv_weight_gradient and the two attentions,
/// of which every score counts, also one that a causal mask leaves out.
OperationWork forward_work(std::string_view name, const std::vector<Tensor>& results,
                           const std::vector<Tensor>& inputs);

/// Of the gradients of those of `inputs` that are recorded. They read the results' gradients and the inputs. The
/// gradient of an operand takes the multiply-adds of the forward pass; the three of attention take two and a half times
/// as many, since the scores are made again.
OperationWork backward_work(std::string_view name, const std::vector<Tensor>& results,
                            const std::vector<Tensor>& inputs);

}  // namespace lockstep::ops
