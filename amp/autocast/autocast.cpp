// SPDX-License-Identifier: Apache-2.0
#include "amp/autocast/autocast.h"

#include <string>
#include <vector>

#include "amp/autocast/cast_cache.h"
#include "amp/autocast/operation_trace.h"
#include "runtime/autograd/cast.h"
#include "runtime/base/error.h"

namespace lockstep::amp {

namespace {

/// Guards that live on this thread.
thread_local int depth = 0;

Autocast::State reduced(DType dtype) {
  if (!is_reduced(dtype)) {
    throw UsageError("autocast to " + std::string(name_of(dtype)), "Use float16 or bfloat16, or Autocast(false).");
  }
  return {true, dtype};
}

/// The dtype that the policy table gives an input of an operation.
DType decided(Op op, const Tensor& input, const Tensor& other) {
  const DType dtype = input.dtype();
  if (policy_of(op) == CastPolicy::kRefused && Autocast::enabled()) {
    throw UsageError(std::string(name_of(op)) + " is refused under autocast: 16-bit probabilities lose what it needs",
                     "Use " + std::string(name_of(op)) + "_with_logits on what the sigmoid takes, or Autocast(false).");
  }
  if (!is_floating(dtype) || dtype == DType::kFloat64) return dtype;
  switch (policy_of(op)) {
    case CastPolicy::kLowerPrecision:
      return Autocast::enabled() ? Autocast::dtype() : dtype;
    case CastPolicy::kFloat32:
      return Autocast::enabled() ? DType::kFloat32 : dtype;
    case CastPolicy::kPromote:
      // Type promotion holds with and without a guard.
      return other.defined() && is_floating(other.dtype()) ? promote(dtype, other.dtype()) : dtype;
    case CastPolicy::kNone:
    case CastPolicy::kRefused:
      return dtype;
  }
  throw UsageError("an autocast policy without a dtype");
}

/// decided(), which it also tells the thread's trace. `casts`: whether the table casts.
DType answer(Op op, const Tensor& input, const Tensor& other, bool casts) {
  const DType dtype = decided(op, input, other);
  if (OperationTrace* trace = OperationTrace::current()) trace->asked(op, input, dtype, casts);
  return dtype;
}

}  // namespace

Autocast::Autocast(State state) : previous_(autograd::autocast_state()) {
  autograd::autocast_state() = state;
  ++depth;
}

Autocast::Autocast(DType dtype) : Autocast(reduced(dtype)) {}

Autocast::Autocast(bool enabled) : Autocast(State{enabled, dtype()}) {}

Autocast::~Autocast() {
  autograd::autocast_state() = previous_;
  if (--depth == 0) CastCache::on_this_thread().clear();
}

bool Autocast::enabled() { return state().enabled; }
DType Autocast::dtype() { return state().dtype; }
Autocast::State Autocast::state() { return autograd::autocast_state(); }

DType dtype_for(Op op, const Tensor& input, const Tensor& other) {
  require_defined(input, name_of(op), "the input");
  return answer(op, input, other, false);
}

Tensor autocast(Op op, const Tensor& input, std::string_view argument) {
  require_defined(input, name_of(op), argument);
  return autocast_beside(op, input, {});
}

Tensor autocast_if_defined(Op op, const Tensor& input) { return input.defined() ? autocast(op, input) : input; }

Tensor autocast_beside(Op op, const Tensor& input, const Tensor& other) {
  const DType dtype = answer(op, input, other, true);
  // A weight is cast once within a guard, however many operations read it. A backward pass may run outside any, where
  // nobody would empty the cache.
  if (depth > 0 && policy_of(op) == CastPolicy::kLowerPrecision) return CastCache::on_this_thread().cast(input, dtype);
  return autograd::cast(input, dtype);
}

}  // namespace lockstep::amp
