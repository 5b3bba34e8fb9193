// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/window_options.h"

#include "runtime/base/field_checks.h"

namespace lockstep::launcher {

void WindowOptions::add_to(CLI::App& command, CLI::Option* whole) {
  command.add_option("--overlap", overlap, "share of a window that the next one covers again")
      ->needs(whole)
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.99));
  command.add_option("--window-weights", weights, "gaussian: the middle of a window counts most")
      ->needs(whole)
      ->capture_default_str()
      ->check(CLI::IsMember({"constant", "gaussian"}));
}

train::SlidingWindowOptions WindowOptions::windows(Device device) const {
  return {.overlap = overlap,
          .weights = weights == "gaussian" ? train::WindowWeights::kGaussian : train::WindowWeights::kConstant,
          .device = device};
}

std::vector<std::string> WindowOptions::arguments() const {
  return {"--overlap", shortest_text(overlap), "--window-weights", weights};
}

}  // namespace lockstep::launcher
