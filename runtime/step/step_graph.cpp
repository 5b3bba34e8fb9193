// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/step_graph.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

#include "comm/group/device_waits.h"
#include "runtime/base/error.h"
#include "runtime/data/sampler.h"

namespace lockstep::step {

namespace {

/// The text of an exception; never empty.
std::string reason_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return *error.what() == '\0' ? "an exception without words" : error.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

}  // namespace

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
    // A step divides by them, also where this rank's shapes stay the same.
    key.samples.insert(key.samples.end(), {batch.step_samples, batch.global_samples});
  }
  return key;
}

StepGraph::Match StepGraph::match(const Key& key, const StepInputs& inputs) {
  Match match{.captured = graph_ && key == captured_, .last = key == last_};
  if (alone()) return match;
  for (const data::Batch& batch : inputs.micro_batches) {
    agrees_ = agrees_ || !batch.dealt;
    if (!agrees_) require_share(batch);
  }
  if (!agrees_) return match;
  const Tensor differs = Tensor::from<std::int32_t>({match.captured ? 0 : 1, match.last ? 0 : 1}, {2});
  communicator_.all_reduce(differs, comm::ReduceOp::kMax, 1.0f, Stream::calling_thread());
  const auto of_any = differs.as<std::int32_t>();
  return {.captured = of_any[0] == 0, .last = of_any[1] == 0};
}

void StepGraph::require_share(const data::Batch& batch) const {
  const int rank = communicator_.rank(), ranks = communicator_.size();
  const std::int64_t expected = data::share({0, batch.global_samples}, rank, ranks).size();
  if (batch.input.size(0) == expected) return;
  throw UsageError(
      fmt::format("a step on {}: rank {} of {} has {} samples of the {} of a loader's batch, not its share "
                  "of {}",
                  str(device_), rank, ranks, batch.input.size(0), batch.global_samples, expected),
      "Give LoaderOptions the rank and world_size of the model's World, or, where the loop changes what a "
      "loader gives, clear Batch::dealt on every rank, from the first step on.");
}

void StepGraph::run(const StepInputs& inputs, Setting setting, const std::function<void()>& compute) {
  if (given_up_) return compute();
  Key key = key_of(inputs, std::move(setting));
  Match now = match(key, inputs);
  if (!now.captured && now.last) {
    capture(key, compute);
    now.captured = !given_up_;
  }
  if (now.captured) {
    comm::launch_watched(communicator_, Stream::current(device_), inputs.step, [this] { graph_->launch(); });
    ++launches_;
  } else {
    compute();
  }
  last_ = given_up_ ? Key() : std::move(key);
}

void StepGraph::capture(const Key& key, const std::function<void()>& compute) {
  // The calls below wait for the device, and block as long as its work hangs.
  Stream::current(device_).synchronize();
  graph_.reset();
  captured_ = {};
  // The graph can take the memory that the step before used.
  gpu::release_cached(device_);
  auto graph = std::make_unique<gpu::Graph>(device_);
  std::exception_ptr failure;
  try {
    graph->capture(compute);
  } catch (const PeerError&) {
    throw;  // there are no ranks to agree with
  } catch (...) {
    failure = std::current_exception();
    graph.reset();
  }
  agree_on_capture(failure);
  if (given_up_) return;
  graph_ = std::move(graph);
  captured_ = key;
}

void StepGraph::agree_on_capture(const std::exception_ptr& failure) {
  const std::vector<std::string> reasons = communicator_.all_gather_text(failure ? reason_of(failure) : "");
  const auto failed = std::ranges::find_if(reasons, [](const std::string& reason) { return !reason.empty(); });
  if (failed == reasons.end()) return;
  given_up_ = true;
  const std::string what =
      fmt::format("rank {} cannot capture its step as a CUDA graph: {}", failed - reasons.begin(), *failed);
  if (required_) {
    if (failure) std::rethrow_exception(failure);
    throw PeerError(what, "Look for the error there, or leave TrainingStepOptions::graph at Graph::kAuto.");
  }
  if (communicator_.rank() == 0) spdlog::warn("{}; all ranks run their steps without one from here on", what);
}

}  // namespace lockstep::step
