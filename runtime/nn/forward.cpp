// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/forward.h"

#include <optional>
#include <vector>

#include "amp/autocast/autocast.h"
#include "runtime/nn/arena.h"
#include "runtime/ops/shape.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/trace_range.h"

namespace lockstep::nn {

namespace {

using Run = std::function<Tensor(std::span<const Tensor>)>;

/// Calls `run` with those of numbers in `dtype`.
Tensor run_with(std::span<const Tensor> inputs, DType dtype, const Run& run) {
  std::vector<Tensor> cast(inputs.begin(), inputs.end());
  for (Tensor& input : cast) {
    if (is_floating(input.dtype())) input = ops::cast(input, dtype);
  }
  return run(cast);
}

Tensor forward_in(DType dtype, std::span<const Tensor> inputs, const Run& run) {
  const Tensor output = run_with(inputs, dtype, run);
  return is_reduced(dtype) ? ops::cast(output, DType::kFloat32) : output;
}

Tensor run_at_level(Module& model, std::span<const Tensor> inputs, const Run& run) {
  for (const Tensor& input : inputs) require_defined(input, "forward", inputs.size() == 1 ? "the input" : "an input");
  const MemoryScope scope(MemoryPurpose::kActivations);
  const TraceRange trace("forward");
  if (!model.arena()) {
    return amp::Autocast::enabled() ? run(inputs) : forward_in(model.dtype(), inputs, run);
  }
  const ArenaOptions& level = model.arena()->options();
  const bool cast_operations = level.autocast.value_or(!level.reduced_parameters && is_reduced(level.compute_dtype));
  std::optional<amp::Autocast> autocast;
  if (cast_operations) autocast.emplace(level.compute_dtype);
  // amp::OptLevelProperties::input_dtype() must name the same dtype: a data::Loader may have cast the batch to it.
  const Tensor output = level.reduced_parameters ? run_with(inputs, level.compute_dtype, run) : run(inputs);
  if (level.output_dtype) return ops::cast(output, *level.output_dtype);
  return level.reduced_parameters ? ops::cast(output, DType::kFloat32) : output;
}

}  // namespace

Tensor forward(Module& model, const Tensor& input) { return forward(model, std::span<const Tensor>(&input, 1)); }

Tensor forward(Module& model, std::span<const Tensor> inputs) {
  return run_at_level(model, inputs, [&model](std::span<const Tensor> all) { return model(all); });
}

Tensor forward(Module& model, const Tensor& input, const std::function<Tensor(const Tensor&)>& run) {
  return run_at_level(model, std::span<const Tensor>(&input, 1),
                      [&run](std::span<const Tensor> all) { return run(all.front()); });
}

}  // namespace lockstep::nn
