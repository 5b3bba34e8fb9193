// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "amp/autocast/policy.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// Two operands in the one dtype in which the operation runs on them.
struct Operands {
  Tensor a;
  Tensor b;

  Operands(amp::Op op, const Tensor& first, const Tensor& second);
};

}  // namespace lockstep::ops
