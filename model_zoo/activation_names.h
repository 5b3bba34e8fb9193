// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/base/option_fields.h"
#include "runtime/ops/types.h"

namespace lockstep {

/// The activations that a job can name.
template <>
struct EnumNames<ops::Activation> {
  static constexpr std::array kNames{std::pair{ops::Activation::kRelu, std::string_view("RELU")},
                                     std::pair{ops::Activation::kGelu, std::string_view("GELU")},
                                     std::pair{ops::Activation::kGeluTanh, std::string_view("GELU_TANH")}};
};

}  // namespace lockstep
