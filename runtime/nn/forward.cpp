// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/forward.h"

#include "amp/autocast/autocast.h"
#include "runtime/nn/arena.h"
#include "runtime/ops/shape.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/trace_range.h"

namespace lockstep::nn {

namespace {

Tensor forward_in(DType dtype, Module& model, const Tensor& input) {
  const Tensor output = model.forward(is_floating(input.dtype()) ? ops::cast(input, dtype) : input);
  return is_reduced(dtype) ? ops::cast(output, DType::kFloat32) : output;
}

}  // namespace

Tensor forward(Module& model, const Tensor& input) {
  const MemoryScope scope(MemoryPurpose::kActivations);
  const TraceRange trace("forward");
  if (!model.arena()) {
    return amp::Autocast::enabled() ? model.forward(input) : forward_in(model.dtype(), model, input);
  }
  const ArenaOptions& level = model.arena()->options();
  if (level.reduced_parameters) return forward_in(level.compute_dtype, model, input);
  if (!is_reduced(level.compute_dtype)) return model.forward(input);
  const amp::Autocast autocast(level.compute_dtype);
  return model.forward(input);
}

}  // namespace lockstep::nn
