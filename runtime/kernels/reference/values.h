// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels::reference {

// Every reference kernel reads its inputs as doubles, computes in double, and rounds once when it stores. So a kernel
// is written once for all dtypes, and its outputs may alias its inputs.

using Values = std::vector<double>;

Values load(const Tensor& tensor);
/// Rounds each value once to the tensor's dtype.
void store(const Values& values, const Tensor& tensor);
/// The values to which a kernel that may accumulate adds: the tensor's where it accumulates, else zeros.
Values load_if(bool accumulate, const Tensor& tensor);
/// `value` as it would be read again after it was stored as `dtype`.
double rounded(double value, DType dtype);

}  // namespace lockstep::kernels::reference
