// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/arena.h"

#include <algorithm>

#include "runtime/autograd/meta.h"
#include "runtime/kernels/backend.h"
#include "runtime/tensor/error.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::nn {

namespace {

/// 64 bytes of the narrowest dtype that an arena holds.
constexpr std::int64_t kAlignment = 32;

/// Elements [slot.begin, slot.end) of a flat tensor.
Tensor flat_slice(const Tensor& flat, const Arena::Slot& slot) { return flat.rows(slot.begin, slot.end); }

Storage labelled(const char* label, std::size_t bytes, Device device) {
  const gpu::AllocationLabel scope(label);
  return Storage::allocate(bytes, device);
}

}  // namespace

Arena::Arena(Module& root, const ArenaOptions& options) : options_(options), statistics_(root.statistics()) {
  std::vector<Parameter> parameters = root.parameters();
  if (parameters.empty()) throw UsageError("a model without parameters cannot be trained");
  std::ranges::reverse(parameters);
  for (Parameter& parameter : parameters) {
    const std::int64_t end = size_ + parameter.tensor.numel();
    slots_.push_back({std::move(parameter), size_, end});
    size_ = (end + kAlignment - 1) / kAlignment * kAlignment;
  }

  const Device device = options_.device;
  for (const auto& [name, statistics] : statistics_) statistics->move_to(device);
  const Storage master_storage = labelled("master weights", static_cast<std::size_t>(size_) * sizeof(float), device);
  masters_ = Tensor::view(master_storage, 0, {size_}, DType::kFloat32);
  kernels::Backend& backend = kernels::backend(device);
  backend.fill(masters_, 0.0);
  for (const Slot& slot : slots_) {
    backend.cast(slot.parameter.tensor.reshaped({slot.end - slot.begin}).to(device), flat_slice(masters_, slot));
  }
  Storage copy_storage;
  if (options_.compute_dtype != DType::kFloat32) {
    copy_storage =
        labelled("compute copies", static_cast<std::size_t>(size_) * size_of(options_.compute_dtype), device);
    copies_ = Tensor::view(copy_storage, 0, {size_}, options_.compute_dtype);
    refresh_copies();
    for (const Slot& slot : slots_) {
      if (is_rounded(slot)) backend.cast(flat_slice(copies_, slot), flat_slice(masters_, slot));
    }
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
      if (copies_.defined()) meta.compute_copy = flat_slice(copies_, slot).reshaped(parameter.tensor.shape());
    }
  }
  const std::size_t grad_bytes = static_cast<std::size_t>(size_) * sizeof(float);
  const Storage grads = labelled("gradients", grad_bytes, device);
  backend.fill(Tensor::view(grads, 0, {size_}, DType::kFloat32), 0.0);
  place_gradients(grads, DType::kFloat32);
}

bool Arena::is_reduced(const Parameter& parameter) const {
  return options_.reduced_parameters && !(parameter.kind == ParameterKind::kNorm && options_.keep_norm_float32);
}

bool Arena::is_rounded(const Slot& slot) const { return !options_.master_weights && is_reduced(slot.parameter); }

Tensor Arena::master(const Slot& slot) const {
  return flat_slice(masters_, slot).reshaped(slot.parameter.tensor.shape());
}

void Arena::place_gradients(Storage storage, DType dtype) {
  grads_ = Tensor::view(std::move(storage), 0, {size_}, dtype);
  for (const Slot& slot : slots_) {
    autograd::Meta& meta = autograd::meta_of(slot.parameter.tensor);
    meta.slot = flat_slice(grads_, slot).reshaped(slot.parameter.tensor.shape());
    meta.slot_filled = false;
  }
}

void Arena::zero_grad() const {
  for (const Slot& slot : slots_) autograd::meta_of(slot.parameter.tensor).slot_filled = false;
}

void Arena::zero_missing_grads() const {
  for (const Slot& slot : slots_) {
    autograd::Meta& meta = autograd::meta_of(slot.parameter.tensor);
    if (meta.slot_filled) continue;
    kernels::backend(grads_.device()).fill(meta.slot, 0.0);
    meta.slot_filled = true;
  }
}

void Arena::refresh_copies() const {
  if (copies_.defined()) kernels::backend(masters_.device()).cast(masters_, copies_);
  for (const Slot& slot : slots_) slot.parameter.tensor.bump_version();
}

void Arena::commit_statistics(const float* found_inf) {
  for (const auto& [name, statistics] : statistics_) statistics->commit(found_inf);
}

}  // namespace lockstep::nn
