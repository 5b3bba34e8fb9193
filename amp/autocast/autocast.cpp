// SPDX-License-Identifier: Apache-2.0
#include "amp/autocast/autocast.h"

#include <string>
#include <vector>

#include "amp/autocast/cast_cache.h"
#include "runtime/autograd/cast.h"
#include "runtime/tensor/error.h"

namespace lockstep::amp {

namespace {

thread_local Autocast::State current;
thread_local int depth = 0;

Autocast::State reduced(DType dtype) {
  if (!is_reduced(dtype)) {
    throw UsageError("autocast to " + std::string(name_of(dtype)), "Use float16 or bfloat16, or Autocast(false).");
  }
  return {true, dtype};
}

}  // namespace

Autocast::Autocast(State state) : previous_(current) {
  current = state;
  ++depth;
}

Autocast::Autocast(DType dtype) : Autocast(reduced(dtype)) {}

Autocast::Autocast(bool enabled) : Autocast(State{enabled, current.dtype}) {}

Autocast::~Autocast() {
  current = previous_;
  if (--depth == 0) CastCache::on_this_thread().clear();
}

bool Autocast::enabled() { return current.enabled; }
DType Autocast::dtype() { return current.dtype; }
Autocast::State Autocast::state() { return current; }

DType dtype_for(Op op, const Tensor& input, const Tensor& other) {
  const DType dtype = input.dtype();
  if (!is_floating(dtype) || dtype == DType::kFloat64) return dtype;
  switch (policy_of(op)) {
    case CastPolicy::kLowerPrecision:
      return current.enabled ? current.dtype : dtype;
    case CastPolicy::kFloat32:
      return current.enabled ? DType::kFloat32 : dtype;
    case CastPolicy::kPromote:
      // Type promotion holds with and without a guard.
      return other.defined() && is_floating(other.dtype()) ? promote(dtype, other.dtype()) : dtype;
    case CastPolicy::kNone:
      return dtype;
  }
  throw UsageError("an autocast policy without a dtype");
}

Tensor autocast(Op op, const Tensor& input, const Tensor& other) {
  if (!input.defined()) return input;
  const DType dtype = dtype_for(op, input, other);
  // A weight is cast once within a guard, however many operations read it.
  if (policy_of(op) == CastPolicy::kLowerPrecision) return CastCache::on_this_thread().cast(input, dtype);
  return autograd::cast(input, dtype);
}

}  // namespace lockstep::amp
