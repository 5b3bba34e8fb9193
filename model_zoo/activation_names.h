// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/base/option_fields.h"
#include "runtime/kernels/activation.h"

namespace lockstep {

/// The activations that a job can name.
template <>
struct EnumNames<kernels::Activation> {
  static constexpr std::array kNames{std::pair{kernels::Activation::kRelu, std::string_view("RELU")},
                                     std::pair{kernels::Activation::kGelu, std::string_view("GELU")},
                                     std::pair{kernels::Activation::kGeluTanh, std::string_view("GELU_TANH")}};
};

}  // namespace lockstep
