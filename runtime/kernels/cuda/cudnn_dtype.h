// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn_frontend.h>

#include "runtime/tensor/dtype.h"

namespace lockstep::kernels::cuda {

inline cudnn_frontend::DataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return cudnn_frontend::DataType_t::HALF;
    case DType::kBFloat16:
      return cudnn_frontend::DataType_t::BFLOAT16;
    default:
      return cudnn_frontend::DataType_t::FLOAT;
  }
}

}  // namespace lockstep::kernels::cuda
