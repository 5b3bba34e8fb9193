// SPDX-License-Identifier: Apache-2.0
#include "comm/group/device_waits.h"

namespace lockstep::comm {

void launch_watched(Communicator& communicator, const Stream& stream, std::uint64_t step,
                    const std::function<void()>& launch) {
  if (auto* const watch = dynamic_cast<LaunchWatch*>(&communicator)) {
    watch->watch(stream, step, launch);
  } else {
    launch();
  }
}

void inspect_wait(Communicator& host, const Operation& operation, std::int64_t number,
                  std::chrono::milliseconds waited) {
  if (auto* const inspection = dynamic_cast<WaitInspection*>(&host)) inspection->inspect(operation, number, waited);
}

}  // namespace lockstep::comm
