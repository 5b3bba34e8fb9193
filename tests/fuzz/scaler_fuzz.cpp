// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "amp/grad_scaler/grad_scaler_state.h"
#include "runtime/base/error.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// As this project and as PyTorch writes them.
std::vector<std::string> scaler_seeds() {
  const std::string state = R"({"scale":65536.0,"growth_factor":2.0,"backoff_factor":0.5,"growth_interval":2000,)";
  return {state + R"("_growth_tracker":3,"consecutive_skips":1,"skipped_steps":4})", state + R"("_growth_tracker":0})",
          "{}"};
}

/// The state of a GradScaler; what is taken is written and read again as the same.
void fuzz_scaler(std::string_view bytes) {
  try {
    const amp::GradScalerState state = amp::grad_scaler_state_from_json(bytes);
    if (amp::grad_scaler_state_from_json(amp::to_json(state)) != state) std::abort();
  } catch (const UsageError&) {
  }
}

}  // namespace

Target scaler_target() {
  return {.parse = fuzz_scaler,
          .seeds = scaler_seeds(),
          // Deeper than a stack.
          .hostile = {R"({"scale":)" + std::string(1 << 20, '[') + std::string(1 << 20, ']') + "}"}};
}

}  // namespace lockstep::fuzz
