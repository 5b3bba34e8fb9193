// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/forward.h"

#include <optional>

#include "amp/autocast/autocast.h"
#include "runtime/nn/arena.h"
#include "runtime/ops/shape.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/trace_range.h"

namespace lockstep::nn {

namespace {

using Run = std::function<Tensor(const Tensor&)>;

Tensor forward_in(DType dtype, const Tensor& input, const Run& run) {
  const Tensor output = run(is_floating(input.dtype()) ? ops::cast(input, dtype) : input);
  return is_reduced(dtype) ? ops::cast(output, DType::kFloat32) : output;
}

}  // namespace

Tensor forward(Module& model, const Tensor& input) {
  return forward(model, input, [&model](const Tensor& x) { return model.forward(x); });
}

Tensor forward(Module& model, const Tensor& input, const Run& run) {
  require_defined(input, "forward", "the input");
  const MemoryScope scope(MemoryPurpose::kActivations);
  const TraceRange trace("forward");
  if (!model.arena()) {
    return amp::Autocast::enabled() ? run(input) : forward_in(model.dtype(), input, run);
  }
  const ArenaOptions& level = model.arena()->options();
  const bool cast_operations = level.autocast.value_or(!level.reduced_parameters && is_reduced(level.compute_dtype));
  std::optional<amp::Autocast> autocast;
  if (cast_operations) autocast.emplace(level.compute_dtype);
  // amp::OptLevelProperties::input_dtype() must name the same dtype: a data::Loader may have cast the batch to it.
  const bool cast_input = level.reduced_parameters && is_floating(input.dtype());
  const Tensor output = run(cast_input ? ops::cast(input, level.compute_dtype) : input);
  if (level.output_dtype) return ops::cast(output, *level.output_dtype);
  return level.reduced_parameters ? ops::cast(output, DType::kFloat32) : output;
}

}  // namespace lockstep::nn
