// SPDX-License-Identifier: Apache-2.0
#include "amp/autocast/cast_cache.h"

#include "runtime/autograd/cast.h"
#include "runtime/autograd/node.h"

namespace lockstep::amp {

namespace {

/// Only the cast of a float32 leaf parameter without a compute copy is worth keeping: other tensors are used once.
bool cacheable(const Tensor& tensor, DType dtype) {
  const auto& meta = tensor.autograd_meta();
  return tensor.dtype() == DType::kFloat32 && dtype != DType::kFloat32 && meta && meta->requires_grad &&
         !meta->producer && !meta->compute_copy.defined();
}

/// Whether a backward pass went through the recorded cast, after which nothing more can.
bool is_walked(const Tensor& cast) {
  const auto& meta = cast.autograd_meta();
  return meta && meta->producer && meta->producer->released();
}

}  // namespace

CastCache& CastCache::on_this_thread() {
  thread_local CastCache cache;
  return cache;
}

Tensor CastCache::cast(const Tensor& tensor, DType dtype) {
  if (!cacheable(tensor, dtype)) return autograd::cast(tensor, dtype);
  const bool recorded = autograd::is_recorded(tensor);
  const auto found = entries_.find(tensor.data());
  if (found != entries_.end()) {
    const Entry& entry = found->second;
    if (entry.source.is(tensor) && entry.version == tensor.version() && entry.recorded == recorded &&
        entry.cast.dtype() == dtype && !is_walked(entry.cast)) {
      return entry.cast;
    }
  }
  const Tensor cast = autograd::cast(tensor, dtype);
  entries_.insert_or_assign(tensor.data(), Entry{tensor, tensor.version(), recorded, cast});
  return cast;
}

}  // namespace lockstep::amp
