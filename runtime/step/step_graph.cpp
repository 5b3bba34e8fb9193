// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/step_graph.h"

#include <algorithm>
#include <utility>

#include "comm/group/device_waits.h"

namespace lockstep::step {

bool StepGraph::Setting::operator==(const Setting& other) const {
  return choices == other.choices &&
         std::ranges::equal(tensors, other.tensors, [](const Tensor& mine, const Tensor& theirs) {
           return mine.data() == theirs.data() && mine.shape() == theirs.shape() && mine.dtype() == theirs.dtype();
         });
}

StepGraph::Key StepGraph::key_of(const StepInputs& inputs, Setting setting) {
  Key key{std::move(setting), {}};
  std::vector<Tensor>& tensors = key.setting.tensors;
  tensors.insert(tensors.end(), {inputs.positions, inputs.told});
  for (data::Batch batch : inputs.micro_batches) {
    for (const Tensor* const tensor : batch.tensors()) tensors.push_back(*tensor);
    // The same on all ranks, so that all of them capture, and launch, at the same step.
    key.samples.push_back(batch.step_samples);
  }
  return key;
}

void StepGraph::run(const StepInputs& inputs, Setting setting, const std::function<void()>& compute) {
  Key key = key_of(inputs, std::move(setting));
  if (!(graph_ && key == captured_) && key == last_) capture(key, compute);
  if (graph_ && key == captured_) {
    comm::launch_watched(communicator_, Stream::current(device_), inputs.step, [this] { graph_->launch(); });
    ++launches_;
  } else {
    compute();
  }
  last_ = std::move(key);
}

void StepGraph::capture(const Key& key, const std::function<void()>& compute) {
  // What follows waits for the device in calls that block as long as its work hangs.
  Stream::current(device_).synchronize();
  graph_.reset();
  captured_ = {};
  // What the step before used can serve the graph.
  gpu::release_cached(device_);
  auto graph = std::make_unique<gpu::Graph>(device_);
  graph->capture(compute);
  graph_ = std::move(graph);
  captured_ = key;
}

}  // namespace lockstep::step
