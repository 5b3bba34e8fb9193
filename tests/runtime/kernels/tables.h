// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/backend_choice.h"
#include "runtime/tensor/device.h"

namespace lockstep::kernels::testing {

/// The functions of several families in one object: those of the backend for `device`.
template <class... Families>
struct Tables : Families... {
  explicit Tables([[maybe_unused]] Device device) : Families(Families::on(device))... {}
};

/// A family's functions of the reference.
template <class Family>
const Family& reference_of() {
  const ScopedBackend scope(reference_backend());
  return Family::on(kCpu);
}

}  // namespace lockstep::kernels::testing
