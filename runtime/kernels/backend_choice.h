// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "runtime/tensor/device.h"

namespace lockstep::kernels {

struct Backend;  // complete in runtime/kernels/backend.h

/// The backend for tensors on `device`: the fastest one, or the one that a ScopedBackend on this thread put in place.
const Backend& backend(Device device);
/// backend(device)'s name: "cpu", "cuda", "emulated", "reference".
std::string_view backend_name(Device device);
/// Plain loops, every dtype, float64 included: the oracle of the tests, and what float64 tensors run on.
const Backend& reference_backend();

/// While it lives, this thread's CPU tensors run on the given backend. For tests.
class ScopedBackend {
 public:
  explicit ScopedBackend(const Backend& backend);
  ~ScopedBackend();
  ScopedBackend(const ScopedBackend&) = delete;
  ScopedBackend& operator=(const ScopedBackend&) = delete;

 private:
  const Backend* previous_;
};

}  // namespace lockstep::kernels
