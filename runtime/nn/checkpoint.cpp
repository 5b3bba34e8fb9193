// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/checkpoint.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "amp/autocast/cast_cache.h"
#include "runtime/autograd/engine.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/node.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/batch_norm_statistics.h"
#include "runtime/tensor/memory.h"

namespace lockstep::nn {

using autograd::BackwardContext;
using autograd::SavedTensor;

namespace {

/// Sets how often the layers of a block have drawn, while it lives.
class RandomCalls {
 public:
  RandomCalls(Module& block, const std::vector<std::uint64_t>& calls) : block_(block), outer_(block.random_calls()) {
    block.set_random_calls(calls);
  }
  ~RandomCalls() { block_.set_random_calls(outer_); }
  RandomCalls(const RandomCalls&) = delete;
  RandomCalls& operator=(const RandomCalls&) = delete;

 private:
  Module& block_;
  std::vector<std::uint64_t> outer_;
};

/// While it lives, a weight is cast anew: a cast of the first run, or one of the second, would join their graphs.
struct OwnCasts {
  OwnCasts() { amp::CastCache::on_this_thread().clear(); }
  ~OwnCasts() { amp::CastCache::on_this_thread().clear(); }
  OwnCasts(const OwnCasts&) = delete;
  OwnCasts& operator=(const OwnCasts&) = delete;
};

/// A forward pass of a block that can be run again.
class RecordedRun {
 public:
  RecordedRun(Module& block, std::function<Tensor(const Tensor&)> forward)
      : block_(block), forward_(std::move(forward)), place_(StepContext::place()) {
    if (!place_.values.named) random_calls_ = block.random_calls();
  }

  Tensor first(const Tensor& x) {
    const autograd::NoGrad unrecorded;
    const ops::KeptStatistics keep(ops::KeptStatistics::Use::kKeep, statistics_);
    // A block may hand on its input, which has a place in the graph of its own.
    return forward_(x).detach();
  }

  Tensor again(const Tensor& x) {
    const ops::KeptStatistics take(ops::KeptStatistics::Use::kTake, statistics_);
    const MemoryScope purpose(MemoryPurpose::kActivations);
    const autograd::GradMode recorded(true);
    const StepContext context(place_);
    const OwnCasts casts;
    if (place_.values.named) return forward_(x);
    const RandomCalls as_before(block_, random_calls_);
    return forward_(x);
  }

 private:
  Module& block_;
  std::function<Tensor(const Tensor&)> forward_;
  StepContext::Place place_;
  std::vector<std::uint64_t> random_calls_;
  std::vector<ops::Statistics> statistics_;  ///< of its batch norms, over the ranks that they are joined over
};

}  // namespace

Tensor checkpoint(Module& block, const Tensor& x) {
  return checkpoint(block, x, [&block](const Tensor& input) { return block(input); });
}

Tensor checkpoint(Module& block, const Tensor& x, const std::function<Tensor(const Tensor& x)>& forward) {
  if (!autograd::grad_enabled()) return forward(x);
  std::vector<Tensor> inputs{x};
  for (const Parameter& parameter : block.parameters()) inputs.push_back(parameter.tensor);
  if (std::ranges::none_of(inputs, autograd::is_recorded)) return forward(x);

  const auto run = std::make_shared<RecordedRun>(block, forward);
  const Tensor y = run->first(x);
  std::vector<SavedTensor> saved;
  for (const Tensor& input : inputs) saved.push_back(SavedTensor::in_graph(input));
  const auto backward = [run, saved](const Tensor& dy, const BackwardContext& context) {
    std::vector<Tensor> again;
    for (const SavedTensor& input : saved) again.push_back(context.saved(input));
    const bool needs_x = context.needs(0);
    again[0] = again[0].detach();
    if (needs_x) again[0].set_requires_grad(true);
    return autograd::walk_again(context, run->again(again[0]), dy, again);
  };
  autograd::record(y, "checkpoint", inputs, {.fused = backward});
  return y;
}

}  // namespace lockstep::nn
