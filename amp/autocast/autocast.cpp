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

Tensor autocast(Op op, const Tensor& input, const Tensor& other) {
  if (!input.defined() || !is_floating(input.dtype()) || input.dtype() == DType::kFloat64) return input;
  const CastPolicy policy = policy_of(op);
  if (policy == CastPolicy::kPromote) {
    // Type promotion holds with and without a guard.
    return other.defined() && is_floating(other.dtype()) ? autograd::cast(input, promote(input.dtype(), other.dtype()))
                                                         : input;
  }
  if (!current.enabled) return input;
  switch (policy) {
    case CastPolicy::kLowerPrecision:
      return CastCache::on_this_thread().cast(input, current.dtype);
    case CastPolicy::kFloat32:
      return autograd::cast(input, DType::kFloat32);
    case CastPolicy::kPromote:
    case CastPolicy::kNone:
      return input;
  }
  throw UsageError("an autocast policy without a cast");
}

}  // namespace lockstep::amp
