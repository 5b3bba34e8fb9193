// SPDX-License-Identifier: Apache-2.0
// The state of an Optimizer: parameters, arenas, states of elements, learning rates. optimizer_step.cpp has its step.
#include "runtime/optim/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>

#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/kernels/arena.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/decisions.h"
#include "runtime/kernels/functors/decisions.h"
#include "runtime/tensor/memory.h"

namespace lockstep::optim {

namespace {

std::atomic<std::uint64_t> next_id{1};

std::vector<nn::Parameter> each_once(std::vector<nn::Parameter> parameters) {
  if (parameters.empty()) {
    throw UsageError("an optimizer is given an empty list of parameters",
                     "Give it those of a model: model.parameters(), after its layers were added.");
  }
  for (auto one = parameters.begin(); one != parameters.end(); ++one) {
    const auto same = [one](const nn::Parameter& other) { return other.tensor.is(one->tensor); };
    if (std::any_of(parameters.begin(), one, same)) {
      throw UsageError("an optimizer is given parameter " + one->name + " twice", "List each parameter once.");
    }
  }
  return parameters;
}

/// The ranks compare the rate of the schedule, which may be another than that of the options.
std::string without_learning_rate(std::string lines) {
  if (lines.starts_with("lr: ")) lines.erase(0, lines.find('\n') + 1);
  return lines;
}

std::uint64_t hash_of(const std::string& text) {
  Hash128 hash;
  hash.update(text);
  return hash.high64();
}

}  // namespace

Optimizer::Optimizer(std::vector<nn::Parameter> parameters, double lr, double weight_decay,
                     const OptimizerOptions& options, const std::string& rule)
    : id_(next_id.fetch_add(1, std::memory_order_relaxed)),
      options_(without_learning_rate(rule) + lines_of(options)),
      options_hash_(hash_of(options_)),
      parameters_(each_once(std::move(parameters))),
      per_parameter_(resolve_groups(checked(options, "optimizer").groups, parameters_, lr, weight_decay)),
      clip_value_(options.clip_value),
      rates_{static_cast<float>(lr)} {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (per_parameter_[i].frozen) parameters_[i].tensor.set_requires_grad(false);
  }
  if (options.clip_norm) norm_limit_ = {.max = *options.clip_norm};
  if (options.larc) {
    layer_rule_ = {.trust_coefficient = options.larc->trust_coefficient,
                   .epsilon = options.larc->epsilon,
                   .clip = options.larc->clip,
                   .decay_without_norm = false};
  }
}

bool Optimizer::freezes_statistics_of(const Tensor& weight) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].tensor.is(weight)) return per_parameter_[i].freeze_statistics;
  }
  return false;
}

void Optimizer::limit_norm(const kernels::NormLimit& limit) {
  if (!norm_limit_ || limit.max < norm_limit_->max) norm_limit_ = limit;
}

void Optimizer::attach(const std::vector<std::shared_ptr<nn::Arena>>& arenas) {
  parts_.clear();
  slots_.clear();
  state_size_ = 0;
  std::vector<bool> held(parameters_.size(), false);
  for (const std::shared_ptr<nn::Arena>& arena : arenas) add_part(arena, held);
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (held[i]) continue;
    throw UsageError("no model here has the optimizer's parameter " + parameters_[i].name,
                     "Give amp::initialize every model whose parameters the optimizer has.");
  }
  const auto count = static_cast<std::int64_t>(slots_.size());
  const Device device = this->device();
  flags_ = Tensor::zeros({count}, DType::kFloat32, device);
  squares_ = norm_limit_ ? Tensor::zeros({count}, DType::kFloat64, device) : Tensor();
  norm_ = Tensor::from<float>({0.0f, 1.0f, 1.0f}, {3}).to(device);
  parameter_steps_ = Tensor::zeros({count}, DType::kInt64, device);
  device_rates_ = {};
  schedule_ = DeviceValue<kernels::ScheduleState>({}, device);
  skipped_ = Tensor::zeros({1}, DType::kFloat32, device);
  set_learning_rates(rates_);
  layer_rates_ = layer_rule_ ? Tensor::zeros({count, 2}, DType::kFloat32, device) : Tensor();
  state_.clear();
  parameter_state_.clear();
  const MemoryScope scope(MemoryPurpose::kOptimizerState);
  allocate_state();
}

std::size_t Optimizer::state_bytes(std::int64_t elements, std::int64_t parameters) const {
  const std::size_t floats = state_names().size() * static_cast<std::size_t>(elements) +
                             parameter_state_names().size() * static_cast<std::size_t>(parameters);
  return floats * sizeof(float);
}

void Optimizer::add_part(const std::shared_ptr<nn::Arena>& arena, std::vector<bool>& held) {
  Part part{.arena = arena, .first = static_cast<std::int64_t>(slots_.size()), .state_begin = state_size_};
  const std::vector<nn::Arena::Slot>& all = arena->slots();
  for (std::size_t number = 0; number < all.size(); ++number) {
    const nn::Arena::Slot& slot = all[number];
    const auto mine = std::ranges::find_if(
        parameters_, [&slot](const nn::Parameter& parameter) { return parameter.tensor.is(slot.parameter.tensor); });
    if (mine == parameters_.end()) continue;
    const auto at = static_cast<std::size_t>(mine - parameters_.begin());
    const ParameterOptions& own = per_parameter_[at];
    const bool adapts = own.layer_adaptation.value_or(this->adapts(slot.parameter, own.weight_decay));
    held[at] = true;
    if (part.segments.empty()) part.begin = slot.begin;
    part.end = number + 1 < all.size() ? all[number + 1].begin : arena->size();
    part.segments.push_back({.begin = slot.begin,
                             .end = slot.end,
                             .lr_scale = own.lr_scale,
                             .weight_decay = own.weight_decay,
                             .parameter = static_cast<std::int32_t>(slots_.size()),
                             .adapts = adapts ? 1 : 0});
    const std::int64_t begin = part.state_begin + slot.begin - part.begin;
    slots_.push_back({arena.get(), number, begin, begin + slot.end - slot.begin});
  }
  if (part.segments.empty()) return;
  part.last = static_cast<std::int64_t>(slots_.size());
  part.whole = part.segments.size() == all.size();
  state_size_ += part.end - part.begin;
  if (!parts_.empty() && parts_[0].arena->options().device != arena->options().device) {
    throw UsageError("an optimizer whose parameters lie on several devices, " + str(device()) + " and " +
                         str(arena->options().device),
                     "Give each device an optimizer of its own.");
  }
  parts_.push_back(std::move(part));
}

const std::vector<Optimizer::Part>& Optimizer::parts() const {
  if (parts_.empty()) {
    throw UsageError("the optimizer has no arena yet", "Call amp::initialize(model, optimizer, ...) before training.");
  }
  return parts_;
}

nn::Arena& Optimizer::arena() const {
  if (parts().size() > 1) {
    throw UsageError("the optimizer updates " + std::to_string(parts_.size()) + " models, and one is asked for");
  }
  return *parts_[0].arena;
}

std::vector<nn::Arena*> Optimizer::arenas() const {
  std::vector<nn::Arena*> all;
  for (const Part& part : parts()) all.push_back(part.arena.get());
  return all;
}

Device Optimizer::device() const { return parts()[0].arena->options().device; }

std::vector<std::size_t> Optimizer::numbers_in(const Part& part) const {
  std::vector<std::size_t> numbers;
  for (std::int64_t i = part.first; i < part.last; ++i) numbers.push_back(slots_[static_cast<std::size_t>(i)].number);
  return numbers;
}

Tensor Optimizer::gather(const std::function<Tensor(const nn::Arena&)>& of) const {
  if (parts().size() == 1 && parts_[0].whole) return of(*parts_[0].arena);
  const Tensor gathered = Tensor::empty({static_cast<std::int64_t>(slots_.size())}, DType::kFloat32, device());
  for (const Part& part : parts_) {
    const Tensor all = of(*part.arena);
    if (!all.defined()) return {};
    for (std::int64_t i = part.first; i < part.last; ++i) {
      const auto number = static_cast<std::int64_t>(slots_[static_cast<std::size_t>(i)].number);
      gathered.rows(i, i + 1).copy_from(all.rows(number, number + 1));
    }
  }
  return gathered;
}

void Optimizer::zero_grad() {
  for (const Part& part : parts()) {
    if (part.whole) {
      part.arena->zero_grad();
    } else {
      part.arena->zero_grad(numbers_in(part));
    }
  }
}

Tensor Optimizer::add_state(const std::string& name, double value) {
  const Tensor tensor = Tensor::empty({state_size_}, DType::kFloat32, device());
  kernels::fill(tensor, value);
  state_.emplace_back(name, tensor);
  return tensor;
}

Tensor Optimizer::add_parameter_state(const std::string& name) {
  const Tensor tensor = Tensor::zeros({static_cast<std::int64_t>(slots_.size())}, DType::kFloat32, device());
  parameter_state_.emplace_back(name, tensor);
  return tensor;
}

Tensor Optimizer::in_slice(const Tensor& state) const {
  if (!state.defined() || parts_.size() == 1) return state;
  return state.rows(updated_->state_begin, updated_->state_begin + updated_->end - updated_->begin);
}

std::string Optimizer::parameter_rules() const {
  std::string lines = options_;
  for (const Part& part : parts()) {
    for (const kernels::ArenaSegment& segment : part.segments) {
      const nn::Parameter& parameter = slots_[static_cast<std::size_t>(segment.parameter)].parameter();
      lines +=
          fmt::format("{} {}, lr_scale {}, weight_decay {}\n", parameter.name,
                      parameter.tensor.requires_grad() ? "trained" : "frozen", segment.lr_scale, segment.weight_decay);
    }
  }
  return lines;
}

std::uint64_t Optimizer::parameter_rules_hash() const {
  std::uint64_t hash = options_hash_;
  for (const Part& part : parts()) {
    for (const kernels::ArenaSegment& segment : part.segments) {
      const bool frozen = !slots_[static_cast<std::size_t>(segment.parameter)].parameter().tensor.requires_grad();
      hash = kernels::mixed(hash, static_cast<double>(segment.lr_scale));
      hash = kernels::mixed(hash, static_cast<double>(segment.weight_decay));
      hash = kernels::mixed(hash, std::uint64_t{frozen});
    }
  }
  return hash;
}

void Optimizer::set_learning_rates(const std::vector<float>& rates) {
  if (rates.empty()) throw UsageError("a schedule without a learning rate");
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (std::isfinite(rates[i]) && rates[i] >= 0) continue;
    throw UsageError("learning rate " + std::to_string(rates[i]) +
                     (rates.size() > 1 ? " of applied step " + std::to_string(i) : "") +
                     ": it must be a finite number >= 0");
  }
  rates_ = rates;
  if (!schedule_.defined()) return;
  const Tensor host = Tensor::from(rates_, {static_cast<std::int64_t>(rates_.size())});
  if (device_rates_.defined() && device_rates_.shape() == host.shape()) {
    device_rates_.copy_from(host);
  } else {
    device_rates_ = host.to(schedule_.device());
  }
  set_applied_steps(applied_steps());
}

double Optimizer::learning_rate() const {
  return static_cast<double>(schedule_.defined() ? schedule_.read().learning_rate : rates_.front());
}

std::int64_t Optimizer::applied_steps() const { return schedule_.defined() ? schedule_.read().applied_steps : 0; }

void Optimizer::set_applied_steps(std::int64_t steps) {
  const auto last = static_cast<std::int64_t>(rates_.size()) - 1;
  schedule_.write({steps, rates_[static_cast<std::size_t>(std::clamp<std::int64_t>(steps, 0, last))]});
}

}  // namespace lockstep::optim
