// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "amp/autocast/policy.h"
#include "runtime/autograd/autocast_state.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::amp {

/// While it lives, this thread's operations run in the dtype that their policy names. Guards nest; Autocast(false)
/// switches casting off inside another guard. A new thread starts without. An operation's backward pass runs in the
/// state of its forward pass.
class [[nodiscard]] Autocast {
 public:
  /// `dtype`: float16 or bfloat16; otherwise UsageError.
  [[nodiscard]] explicit Autocast(DType dtype);
  [[nodiscard]] explicit Autocast(bool enabled);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  [[nodiscard]] static bool enabled();
  /// The dtype of lower-precision operations where enabled.
  [[nodiscard]] static DType dtype();

  /// The state that a guard changes. A new thread starts with autocast off; a worker enters its caller's scope by
  ///   const auto scope = amp::Autocast::state();
  ///   std::thread worker([scope] { const amp::Autocast here(scope); ... });
  using State = autograd::AutocastState;
  [[nodiscard]] static State state();
  [[nodiscard]] explicit Autocast(State state);

 private:
  State previous_;
};

/// The dtype in which `op` runs on `input`: that of `input` for integers and float64, outside a guard, and where the
/// policy says so. Promotion with `other`, the second operand, also holds outside a guard. Throws UsageError that names
/// the operation where `input` is undefined, and where the policy refuses `op` under autocast.
[[nodiscard]] DType dtype_for(Op op, const Tensor& input, const Tensor& other = {});

/// `input` in that dtype. Every operation asks this, or dtype_for(), for each of its inputs. Throws UsageError, which
/// names the operation and the `argument`, where `input` is undefined.
[[nodiscard]] Tensor autocast(Op op, const Tensor& input, std::string_view argument = "the input");
/// Casts an input that may be left out: an undefined tensor stays one.
[[nodiscard]] Tensor autocast_if_defined(Op op, const Tensor& input);
/// Casts one of the two operands of a promoting operation.
[[nodiscard]] Tensor autocast_beside(Op op, const Tensor& input, const Tensor& other);

}  // namespace lockstep::amp
