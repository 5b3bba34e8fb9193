// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>

#include "runtime/tensor/tensor.h"

namespace lockstep::amp {

/// The casts of leaf parameters without a compute copy: a weight used twice under autocast is cast once. An entry is
/// found by tensor, version, dtype and whether the cast was recorded, so a weight that was written, or first used under
/// NoGrad, never yields a stale or gradient-less copy. A cast that a backward pass went through is made again. Emptied
/// when the outermost guard ends.
class CastCache {
 public:
  static CastCache& on_this_thread();

  Tensor cast(const Tensor& tensor, DType dtype);
  void clear() { entries_.clear(); }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Tensor source;  // kept, so that its address names it and nothing else
    std::uint64_t version;
    bool recorded;
    Tensor cast;
  };
  std::unordered_map<const void*, Entry> entries_;
};

}  // namespace lockstep::amp
