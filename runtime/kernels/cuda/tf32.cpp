// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/tf32.h"

#include <atomic>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "runtime/kernels/cuda_backend.h"

namespace lockstep::kernels {

namespace {

std::atomic<bool> allowed = false;

std::optional<bool> of_environment() {
  const char* value = std::getenv("NVIDIA_TF32_OVERRIDE");
  if (value == nullptr) return {};
  if (std::string_view(value) == "0") return false;
  if (std::string_view(value) == "1") return true;
  return {};
}

}  // namespace

void set_tf32(bool allow) { allowed = allow; }

bool cuda::tf32() {
  static const std::optional<bool> decided = of_environment();
  return decided.value_or(allowed);
}

}  // namespace lockstep::kernels
