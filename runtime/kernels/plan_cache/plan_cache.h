// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace lockstep::kernels {

/// Choices of execution plans that outlive the process. A key names a problem and everything that a choice depends on;
/// its value names the plan. Both are one line of text. Each key has its own file, so that any number of processes may
/// read and write at once, over a network file system too: a file appears whole, and the first value kept for a key
/// stays. No file is an error of the run: one that is damaged, foreign or out of reach counts as missing, and a line in
/// the log says so. Thread-safe.
class PlanCache {
 public:
  /// Keeps its files in `folder`, which it makes when there is something to keep; empty: keeps nothing.
  explicit PlanCache(std::string folder) : folder_(std::move(folder)) {}

  std::optional<std::string> find(const std::string& key) const;
  /// Keeps `value`, unless one is kept for this key already. Returns the one that is, which every process gets; nothing
  /// where none could be kept. Throws UsageError for text of more than one line, and for a value of more than 4 KiB.
  std::optional<std::string> keep(const std::string& key, const std::string& value) const;

  /// Where a key's value lies.
  std::string path_of(const std::string& key) const;

 private:
  std::string folder_;
};

/// The settings of execution plans that the environment gives.
struct PlanSettings {
  std::string folder;     ///< empty: nothing is kept
  bool autotune = false;  ///< take the plan that was fastest when timed, not the one that the library ranks first
};

/// LOCKSTEP_PLAN_CACHE is a folder, or "off"; unset: `lockstep` in $XDG_CACHE_HOME or in ~/.cache, off where neither is
/// known. LOCKSTEP_AUTOTUNE is "on" or "off", the default. Throws UsageError for anything else, and for autotuning
/// without a cache: no two runs would choose alike.
PlanSettings plan_settings();

}  // namespace lockstep::kernels
