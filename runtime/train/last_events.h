// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/step/step_observer.h"

namespace lockstep::train {

/// The newest steps, phases, buckets, collectives and waits of this process, for whoever has to find out why a rank
/// hangs or is slow. Each costs two looks at the clock; single operations are not among them.
class LastEvents final : public step::StepObserver {
 public:
  /// So many that have ended are kept.
  static constexpr std::size_t kKept = 4096;

  /// Takes note, while it lives, of the calling thread, which trains, and of all threads that have no observer of their
  /// own, where no other LastEvents does so.
  LastEvents();
  ~LastEvents() override;
  LastEvents(const LastEvents&) = delete;
  LastEvents& operator=(const LastEvents&) = delete;

  void step_begins(std::uint64_t step) override;
  void phase_begins(step::Phase phase, std::uint64_t step, std::uint32_t micro_batch) override;
  void step_ends(std::uint64_t step) override;

  struct Silence {
    std::chrono::nanoseconds since{0};    ///< the last event of this process began or ended, by own_time()
    bool waits = false;                   ///< in a collective, for data or for a device; otherwise the thread computes
    std::chrono::nanoseconds longest{0};  ///< between two events so far; 0 until the first step has ended
  };
  /// While the training thread is in a step or waits; otherwise nothing.
  std::optional<Silence> silence() const;

  /// Them all as Chrome's trace viewer and Perfetto read them; times count from 1970, by this host's clock. What has
  /// not ended has no end. The metadata have the reason, the rank and the host.
  std::string text(int rank, const std::string& reason) const;

 private:
  pid_t thread_;  ///< that trains
  bool observes_others_ = false;
};

}  // namespace lockstep::train
