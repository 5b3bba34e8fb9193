// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/dtype.h"

namespace lockstep::job {

enum Precision : int;

/// The dtype that a job's precision names; `otherwise` where it names none.
DType dtype_of(Precision precision, DType otherwise);
/// The precision that names a floating dtype; FP32 for any other.
Precision precision_of(DType dtype);

}  // namespace lockstep::job
