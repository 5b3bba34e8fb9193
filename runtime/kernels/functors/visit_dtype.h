// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/error.h"
#include "runtime/tensor/dtype.h"

namespace lockstep::kernels {

/// Calls visitor.template operator()<T>() with the element type of `dtype`.
template <class Visitor>
decltype(auto) visit_dtype(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::kFloat32:
      return visitor.template operator()<float>();
    case DType::kFloat16:
      return visitor.template operator()<Half>();
    case DType::kBFloat16:
      return visitor.template operator()<BFloat16>();
    case DType::kFloat64:
      return visitor.template operator()<double>();
    case DType::kInt64:
      return visitor.template operator()<std::int64_t>();
    case DType::kInt32:
      return visitor.template operator()<std::int32_t>();
    case DType::kUInt8:
      return visitor.template operator()<std::uint8_t>();
    case DType::kBool:
      return visitor.template operator()<bool>();
  }
  throw UsageError("unknown dtype " + std::to_string(static_cast<int>(dtype)));
}

}  // namespace lockstep::kernels
