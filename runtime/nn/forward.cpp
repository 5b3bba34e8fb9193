// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/forward.h"

#include "amp/autocast/autocast.h"
#include "runtime/nn/arena.h"
#include "runtime/ops/shape.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/trace_range.h"

namespace lockstep::nn {

Tensor forward(Module& model, const Tensor& input) {
  const MemoryScope scope(MemoryPurpose::kActivations);
  const TraceRange trace("forward");
  if (!model.arena()) return model.forward(input);
  const ArenaOptions& level = model.arena()->options();
  if (level.reduced_parameters) {
    return ops::cast(model.forward(ops::cast(input, level.compute_dtype)), DType::kFloat32);
  }
  if (!is_reduced(level.compute_dtype)) return model.forward(input);
  const amp::Autocast autocast(level.compute_dtype);
  return model.forward(input);
}

}  // namespace lockstep::nn
