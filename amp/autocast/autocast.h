// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "amp/autocast/policy.h"
#include "runtime/autograd/autocast_state.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::amp {

/// While it lives, this thread's operations run in the dtype that their policy names. Guards nest; Autocast(false)
/// switches casting off inside another guard. A new thread starts without. An operation's backward pass runs in the
/// state of its forward pass.
class Autocast {
 public:
  /// `dtype`: float16 or bfloat16; otherwise UsageError.
  explicit Autocast(DType dtype);
  explicit Autocast(bool enabled);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  static bool enabled();
  /// The dtype of lower-precision operations where enabled.
  static DType dtype();

  /// What a guard changes. A new thread starts with autocast off; a worker enters its caller's scope by
  ///   const auto scope = amp::Autocast::state();
  ///   std::thread worker([scope] { const amp::Autocast here(scope); ... });
  using State = autograd::AutocastState;
  static State state();
  explicit Autocast(State state);

 private:
  State previous_;
};

/// The dtype in which `op` runs on `input` here; that of `input` outside a guard, for integers and float64, and where
/// the policy says so. `other`: the second operand of a promoting operation.
DType dtype_for(Op op, const Tensor& input, const Tensor& other = {});

/// `input` in that dtype; undefined where `input` is. Every operation asks this, or dtype_for(), for each of its
/// inputs.
Tensor autocast(Op op, const Tensor& input, const Tensor& other = {});

}  // namespace lockstep::amp
