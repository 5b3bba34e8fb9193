// SPDX-License-Identifier: Apache-2.0
#include "comm/ddp/distributed_data_parallel.h"

#include <numeric>

#include "comm/ddp/sync_batch_norm.h"
#include "comm/group/same_text.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/meta.h"
#include "runtime/base/error.h"
#include "runtime/base/option_lines.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/step_context.h"
#include "runtime/tensor/memory.h"

namespace lockstep::comm {

namespace {

/// The samples that all of them have. Throws UsageError where they differ.
std::int64_t rows_of(std::span<const Tensor> inputs) {
  if (inputs.empty()) throw UsageError("a forward pass of DistributedDataParallel without inputs");
  for (const Tensor& input : inputs) {
    require_defined(input, "forward", "an input");
    if (input.size(0) == inputs.front().size(0)) continue;
    throw UsageError("a forward pass of DistributedDataParallel is given inputs " + inputs.front().shape().str() +
                         " and " + input.shape().str() + ", which differ in the number of samples",
                     "Give each input the same samples, in the same order.");
  }
  return inputs.front().size(0);
}

}  // namespace

DistributedDataParallel::DistributedDataParallel(nn::Module& model, const World& world, const DdpOptions& options)
    : model_(model),
      arena_(model.arena()),
      communicator_(world.communicator()),
      average_(options.gradient_average),
      shares_asked_(ShareOutput::shares_asked()) {
  require_none(problems_of(options), "comm");
  if (!arena_) throw UsageError("the model has no arena", "Call amp::initialize before DistributedDataParallel.");
  require_unwrapped();
  require_same_model(options);
  const DType wire = options.wire_dtype.value_or(arena_->options().compute_dtype);
  {
    const MemoryScope scope(MemoryPurpose::kGradients);
    arena_->place_gradients(communicator_->allocate(nn::gradient_bytes(arena_->size(), wire, false)), wire);
  }
  arena_->set_ranks(communicator_->size());
  nn::name_layers(model_);
  if (options.sync_batch_norm && communicator_->size() > 1) {
    synchronized_ = convert_sync_batch_norm(model_, *communicator_, options.sync_batch_norm_group);
    one_statistics_ = options.sync_batch_norm_group == 0 || options.sync_batch_norm_group == communicator_->size();
  }
  broadcast_weights();
  reducer_ = std::make_unique<Reducer>(arena_, communicator_, options);
  reducer_->set_on_begin([this] { require_divisor(); });
}

Tensor DistributedDataParallel::forward(std::span<const Tensor> inputs) {
  const std::int64_t samples = rows_of(inputs);
  weigh({});
  if (!needs_first_sample()) return nn::forward(model_, inputs);
  const nn::FirstSample here(samples_before(samples));
  return nn::forward(model_, inputs);
}

ShareOutput DistributedDataParallel::forward(std::span<const Tensor> inputs, const InputPlace& place) {
  const std::int64_t samples = rows_of(inputs);
  std::optional<Share> share;
  if (place.step_samples > 0) share = share_of(place.step_samples, communicator_->size(), average_);
  const auto even = [&] {
    const double ranks = static_cast<double>(communicator_->size());
    return static_cast<double>(samples) == share->loss_divisor &&
           static_cast<double>(place.step_samples) == share->loss_divisor * ranks;
  };
  weigh(share, !share || even());
  if (nn::StepContext::current().named) return {nn::forward(model_, inputs), samples, share};
  if (place.step > 0) {
    const nn::StepContext here(place.step, place.first_sample);
    return {nn::forward(model_, inputs), samples, share};
  }
  const nn::FirstSample here(place.first_sample);
  return {nn::forward(model_, inputs), samples, share};
}

void DistributedDataParallel::set_communication_hook(const std::string& name, CommunicationHook hook) {
  require_same_text(*communicator_, (hook ? "the hook " + name : "none") + "\n",
                    "the ranks disagree on who reduces their gradients", "Set the same hook on every rank.");
  reducer_->set_communication_hook(std::move(hook));
}

void DistributedDataParallel::weigh(const std::optional<Share>& share, bool mean_is_right) {
  // An evaluation may run between a forward pass and its backward pass; it has no gradients to weigh.
  if (!autograd::grad_enabled()) return;
  reducer_->set_factor(share ? share->gradient_factor : 1.0f);
  mean_is_right_ = mean_is_right;
}

void DistributedDataParallel::require_divisor() const {
  if (mean_is_right_ || ShareOutput::shares_asked() != shares_asked_) return;
  throw UsageError(
      "gradients are weighed for a loss that is divided by loss_divisor(), and no output of forward(batch) "
      "was asked for it: the mean over this rank's samples is not its part of the mean over the step's",
      "Divide the sum of the samples' losses by output.loss_divisor(), or multiply their mean by "
      "output.loss_weight(); or call forward(batch.input), which averages the ranks' losses.");
}

bool DistributedDataParallel::needs_first_sample() const {
  if (communicator_->size() == 1 || nn::StepContext::current().named) return false;
  bool draws = false;
  model_.for_each([&draws](const std::string&, nn::Module& module) { draws = draws || module.draws_random_numbers(); });
  return draws;
}

std::int64_t DistributedDataParallel::samples_before(std::int64_t samples) const {
  const Tensor all = Tensor::empty({communicator_->size()}, DType::kInt64);
  communicator_->all_gather(Tensor::from<std::int64_t>({samples}, {1}), all, Stream::calling_thread());
  const auto shares = all.as<std::int64_t>();
  return std::accumulate(shares.begin(), shares.begin() + communicator_->rank(), std::int64_t{0});
}

void DistributedDataParallel::broadcast_weights() {
  communicator_->broadcast(arena_->masters(), 0, Stream::current(arena_->masters().device()));
  broadcast_statistics();
  arena_->refresh_copies();
}

void DistributedDataParallel::share_statistics() {
  if (!one_statistics_ && communicator_->size() > 1) broadcast_statistics();
}

void DistributedDataParallel::broadcast_statistics() {
  for (const auto& [name, statistics] : arena_->statistics()) {
    const Tensor& committed = statistics->committed();
    communicator_->broadcast(committed, 0, Stream::current(committed.device()));
  }
}

void DistributedDataParallel::require_unwrapped() const {
  for (const nn::Arena::Slot& slot : arena_->slots()) {
    if (!autograd::meta_of(slot.parameter.tensor).on_grad_ready) continue;
    throw UsageError("another DistributedDataParallel already trains this model", "Destroy it first.");
  }
}

void DistributedDataParallel::require_same_model(const DdpOptions& options) const {
  std::string mine = lines_of(options);
  for (const nn::Arena::Slot& slot : arena_->slots()) {
    // Without the device: each rank of a machine has another GPU.
    const Tensor& tensor = slot.parameter.tensor;
    mine += slot.parameter.name + " " + std::string(name_of(tensor.dtype())) + " " + tensor.shape().str() +
            (tensor.requires_grad() ? "\n" : ", frozen\n");
  }
  require_same_text(*communicator_, mine, "the ranks disagree on what to train",
                    "Start every rank with the same job and the same binary.");
}

}  // namespace lockstep::comm
