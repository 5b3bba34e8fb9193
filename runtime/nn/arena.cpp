// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/arena.h"

#include <algorithm>

#include "runtime/autograd/cast.h"
#include "runtime/autograd/meta.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/tensor/memory.h"

namespace lockstep::nn {

namespace {

/// 256 bytes of the narrowest dtype that an arena holds: what cuBLASLt takes for granted unless it is told otherwise.
constexpr std::int64_t kAlignment = 128;

/// Elements [slot.begin, slot.end) of a flat tensor.
Tensor flat_slice(const Tensor& flat, const Arena::Slot& slot) { return flat.rows(slot.begin, slot.end); }

/// Where the next parameter begins.
std::int64_t padded(std::int64_t end) { return (end + kAlignment - 1) / kAlignment * kAlignment; }

Storage memory_for(MemoryPurpose purpose, std::size_t bytes, Device device) {
  const MemoryScope scope(purpose);
  return Storage::allocate(bytes, device);
}

}  // namespace

std::int64_t arena_elements(const std::vector<Parameter>& parameters) {
  std::int64_t elements = 0;
  for (const Parameter& parameter : parameters) elements = padded(elements + parameter.tensor.numel());
  return elements;
}

std::size_t gradient_bytes(std::int64_t elements, DType wire, bool float32_too) {
  const std::size_t extra = float32_too && wire != DType::kFloat32 ? sizeof(float) : 0;
  return static_cast<std::size_t>(elements) * (size_of(wire) + extra);
}

Arena::Arena(Module& root, const ArenaOptions& options) : options_(options), statistics_(root.statistics()) {
  std::vector<Parameter> parameters = root.parameters();
  if (parameters.empty()) throw UsageError("a model without parameters cannot be trained");
  std::ranges::reverse(parameters);
  for (Parameter& parameter : parameters) {
    std::shared_ptr<HookList<autograd::GradientHook>>& hooks = autograd::meta_of(parameter.tensor).hooks;
    if (hooks && !hooks->empty()) {
      throw UsageError("parameter " + parameter.name + " has a hook, which a gradient in an arena does not pass",
                       "Remove it before amp::initialize, and change gradients behind the backward pass.");
    }
    hooks = nullptr;
    const std::int64_t end = size_ + parameter.tensor.numel();
    slots_.push_back({std::move(parameter), size_, end});
    size_ = padded(end);
  }
  used_.resize(slots_.size());
  reduced_gradients_.resize(slots_.size());

  const Device device = options_.device;
  every_gradient_ = Tensor::empty({static_cast<std::int64_t>(slots_.size())}, DType::kFloat32, device);
  kernels::fill(every_gradient_, 1.0);
  for (const auto& [name, statistics] : statistics_) statistics->move_to(device);
  const Storage master_storage =
      memory_for(MemoryPurpose::kMasterWeights, static_cast<std::size_t>(size_) * sizeof(float), device);
  masters_ = Tensor::view(master_storage, 0, {size_}, DType::kFloat32);
  kernels::fill(masters_, 0.0);
  for (const Slot& slot : slots_) {
    kernels::cast(slot.parameter.tensor.detach({slot.end - slot.begin}).to(device), flat_slice(masters_, slot));
  }
  Storage copy_storage;
  if (options_.compute_dtype != DType::kFloat32) {
    copy_storage = memory_for(MemoryPurpose::kComputeCopies,
                              static_cast<std::size_t>(size_) * size_of(options_.compute_dtype), device);
    copies_ = Tensor::view(copy_storage, 0, {size_}, options_.compute_dtype);
    refresh_copies();
  }

  for (const Slot& slot : slots_) {
    const Parameter& parameter = slot.parameter;
    autograd::Meta& meta = autograd::meta_of(parameter.tensor);
    meta.name = parameter.name;
    if (is_reduced(parameter)) {
      parameter.tensor.rebind(copy_storage, static_cast<std::size_t>(slot.begin) * size_of(options_.compute_dtype),
                              options_.compute_dtype);
    } else {
      parameter.tensor.rebind(master_storage, static_cast<std::size_t>(slot.begin) * sizeof(float), DType::kFloat32);
      if (copies_.defined()) {
        meta.compute_copy = flat_slice(copies_, slot).reshaped(parameter.tensor.shape());
        meta.compute_copy.share_version(parameter.tensor);
      }
    }
    note_written(slot);
  }
  const std::size_t grad_bytes = static_cast<std::size_t>(size_) * sizeof(float);
  const Storage grads = memory_for(MemoryPurpose::kGradients, grad_bytes, device);
  kernels::fill(Tensor::view(grads, 0, {size_}, DType::kFloat32), 0.0);
  place_gradients(grads, DType::kFloat32);
}

bool Arena::is_reduced(const Parameter& parameter) const {
  return options_.reduced_parameters && !(parameter.kind == ParameterKind::kNorm && options_.keep_norm_float32);
}

bool Arena::is_rounded(const Slot& slot) const { return !options_.master_weights && is_reduced(slot.parameter); }

const Tensor& Arena::masters() const {
  take_over_writes();
  return masters_;
}

const Tensor& Arena::copies() const {
  take_over_writes();
  return copies_;
}

Tensor Arena::master(const Slot& slot) const {
  take_over(slot);
  if (!is_reduced(slot.parameter)) return slot.parameter.tensor.detach();
  return flat_slice(masters_, slot).reshaped(slot.parameter.tensor.shape());
}

std::vector<Tensor> Arena::slots_of(const Tensor& flat) const {
  std::vector<Tensor> parts;
  for (const Slot& slot : slots_) parts.push_back(flat_slice(flat, slot).reshaped(slot.parameter.tensor.shape()));
  return parts;
}

void Arena::place_gradients(Storage storage, DType dtype) {
  wire_ = Tensor::view(std::move(storage), 0, {size_}, dtype);
  wire_slots_ = slots_of(wire_);
  float32_grads_ = dtype == DType::kFloat32 ? wire_ : Tensor();
  float32_slots_ = dtype == DType::kFloat32 ? wire_slots_ : std::vector<Tensor>();
  grads_ = {};
  zero_grad();
}

const Tensor& Arena::float32_grads() {
  if (float32_grads_.defined()) return float32_grads_;
  const Device device = options_.device;
  const Storage storage =
      memory_for(MemoryPurpose::kFloat32Gradients, static_cast<std::size_t>(size_) * sizeof(float), device);
  float32_grads_ = Tensor::view(storage, 0, {size_}, DType::kFloat32);
  kernels::fill(float32_grads_, 0.0);
  float32_slots_ = slots_of(float32_grads_);
  return float32_grads_;
}

void Arena::hold(const Tensor& grads) {
  if (grads.is(grads_)) return;
  grads_ = grads;
  const std::vector<Tensor>& parts = grads.is(wire_) ? wire_slots_ : float32_slots_;
  for (std::size_t i = 0; i < slots_.size(); ++i) meta_of_slot(i).move_slot(parts[i]);
}

void Arena::widen() {
  const Tensor from = grads_;
  const Tensor& to = float32_grads();
  if (from.is(to)) return;
  if (!holds_nothing()) kernels::cast(from, to);
  hold(to);
}

void Arena::keep_shown_gradients() const {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) meta_of_slot(slot).keep_shown();
}

void Arena::zero_grad() {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) forget_gradient(slot);
  hold(wire_);
  reduced_ = false;
  local_flags_ = {};
  agreed_gradients_ = {};
}

void Arena::zero_grad(std::span<const std::size_t> slots) {
  for (const std::size_t slot : slots) forget_gradient(slot);
  if (holds_nothing()) return zero_grad();
  // The slots may hold an inf or a NaN, which a reduction of the other slots' gradients would find.
  for (const std::size_t slot : slots) {
    kernels::fill(meta_of_slot(slot).slot, 0.0);
    const auto at = static_cast<std::int64_t>(slot);
    for (const Tensor& flags : {local_flags_, agreed_gradients_}) {
      if (flags.defined()) kernels::fill(flags.rows(at, at + 1), 0.0);
    }
  }
}

void Arena::forget_gradient(std::size_t slot) {
  autograd::Meta& meta = meta_of_slot(slot);
  meta.keep_shown();
  meta.slot_filled = false;
  meta.slot_gradients = 0;
  meta.slot_unscaled = false;
  meta.slot_mark = 0;
  used_[slot] = gradients_of(slot);
  reduced_gradients_[slot] = 0;
}

std::int64_t Arena::gradients_of(std::size_t slot) const { return meta_of_slot(slot).slot_gradients + agreements_; }

autograd::Meta& Arena::meta_of_slot(std::size_t slot) const { return autograd::meta_of(slots_[slot].parameter.tensor); }

bool Arena::holds_nothing() const {
  return std::ranges::none_of(slots_,
                              [](const Slot& slot) { return autograd::meta_of(slot.parameter.tensor).slot_filled; });
}

void Arena::zero_missing_grads() const {
  for (const Slot& slot : slots_) {
    autograd::Meta& meta = autograd::meta_of(slot.parameter.tensor);
    if (!meta.slot_filled) kernels::fill(meta.slot, 0.0);
  }
}

void Arena::note_reduction(const Tensor& local_flags, const Tensor& has_gradient) {
  reduced_ = true;
  local_flags_ = local_flags;
  agreed_gradients_ = has_gradient;
  if (has_gradient.defined()) ++agreements_;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) reduced_gradients_[slot] = meta_of_slot(slot).slot_gradients;
}

Tensor Arena::has_gradient() const {
  if (agreed_gradients_.defined()) return agreed_gradients_;
  bool every = true;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) every = every && has_own_gradient(slot);
  if (every) return every_gradient_;
  const Tensor flags = Tensor::empty({static_cast<std::int64_t>(slots_.size())}, DType::kFloat32, options_.device);
  write_own_gradients(flags);
  return flags;
}

bool Arena::has_own_gradient(std::size_t slot) const {
  const Tensor& tensor = slots_[slot].parameter.tensor;
  return tensor.requires_grad() && autograd::meta_of(tensor).slot_gradients > 0;
}

void Arena::write_own_gradients(const Tensor& flags) const {
  const auto has = [this](std::int64_t slot) { return has_own_gradient(static_cast<std::size_t>(slot)); };
  // Numbers in the work's own arguments, so that a captured step repeats them: one run of equal ones after the other.
  const std::int64_t count = flags.numel();
  for (std::int64_t begin = 0, end = 0; begin < count; begin = end) {
    const bool value = has(begin);
    while (end < count && has(end) == value) ++end;
    kernels::fill(flags.rows(begin, end), value ? 1.0 : 0.0);
  }
}

void Arena::note_unscaled(std::size_t slot) { meta_of_slot(slot).slot_unscaled = true; }

std::uint64_t Arena::scaler_of(std::size_t slot) const { return meta_of_slot(slot).slot_mark; }

void Arena::require_scaled() const {
  for (const Slot& slot : slots_) autograd::meta_of(slot.parameter.tensor).require_scaled();
}

bool Arena::has_new_gradient(std::size_t slot) const { return gradients_of(slot) != used_[slot]; }

bool Arena::has_unreduced_gradient(std::size_t slot) const {
  return ranks_ > 1 && meta_of_slot(slot).slot_gradients != reduced_gradients_[slot];
}

void Arena::use_gradient(std::size_t slot) { used_[slot] = gradients_of(slot); }

void Arena::refresh_copies() const {
  if (copies_.defined()) kernels::cast(masters_, copies_);
  for (const Slot& slot : slots_) {
    if (is_rounded(slot)) kernels::cast(flat_slice(copies_, slot), flat_slice(masters_, slot));
    note_written(slot);
  }
}

void Arena::take_over_writes() const {
  for (const Slot& slot : slots_) take_over(slot);
}

void Arena::take_over(const Slot& slot) const {
  const Tensor& tensor = slot.parameter.tensor;
  autograd::Meta& meta = autograd::meta_of(tensor);
  if (tensor.version() == meta.copied_version) return;
  if (is_reduced(slot.parameter)) {
    kernels::cast(tensor.detach({slot.end - slot.begin}), flat_slice(masters_, slot));
  } else if (copies_.defined()) {
    autograd::renew_compute_copy(tensor);
  }
  meta.copied_version = tensor.version();
}

void Arena::note_update(std::size_t slot) const { note_written(slots_[slot]); }

void Arena::note_written(const Slot& slot) const {
  slot.parameter.tensor.bump_version();
  autograd::meta_of(slot.parameter.tensor).copied_version = slot.parameter.tensor.version();
}

void Arena::commit_statistics(const float* found_inf) const {
  for (const auto& [name, statistics] : statistics_) statistics->commit(found_inf);
}

}  // namespace lockstep::nn
