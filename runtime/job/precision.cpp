// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/precision.h"

#include "configs/job.pb.h"

namespace lockstep::job {

DType dtype_of(Precision precision, DType otherwise) {
  switch (precision) {
    case FP32:
      return DType::kFloat32;
    case FP16:
      return DType::kFloat16;
    case BF16:
      return DType::kBFloat16;
    default:  // an open enum: the default, or a number that validation has refused
      return otherwise;
  }
}

Precision precision_of(DType dtype) {
  if (dtype == DType::kFloat16) return FP16;
  return dtype == DType::kBFloat16 ? BF16 : FP32;
}

}  // namespace lockstep::job
