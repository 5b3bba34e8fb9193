// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/base/option_fields.h"
#include "runtime/tensor/dtype.h"

namespace lockstep {

/// The dtypes that a job can name.
template <>
struct EnumNames<DType> {
  static constexpr std::array kNames{std::pair{DType::kFloat32, std::string_view("FP32")},
                                     std::pair{DType::kFloat16, std::string_view("FP16")},
                                     std::pair{DType::kBFloat16, std::string_view("BF16")}};
};

}  // namespace lockstep
