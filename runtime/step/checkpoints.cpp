// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/checkpoints.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "runtime/step/loop_store.h"
#include "runtime/step/saved_state.h"

namespace lockstep::step {

Checkpoints::Checkpoints(std::string directory, LoopParts parts)
    : parts_(parts), store_(std::make_unique<LoopStore>(std::move(directory), std::move(parts))) {}

Checkpoints::~Checkpoints() = default;

Progress Checkpoints::resume() {
  const auto restored = store_->resume([&] {
    auto found = store_->files().latest();
    if (!found) return found;
    for (const std::string& notice : found->notices) spdlog::warn(notice);
    store_->restore(*found);
    store_->warn_of_changes(found->state);
    return found;
  });
  if (!restored) return {};
  int number = 0;
  for (const auto& [name, scaler] : parts_.scalers) scaler.load_state_dict(state_of(restored->scaler(number++)));
  return progress_of(*restored);
}

void Checkpoints::save(const Progress& progress, std::uint32_t keep) { store_->save(progress, keep); }

}  // namespace lockstep::step
