// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/kernels/plan_cache/plan_cache.h"

namespace lockstep::kernels {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string folder() {
  const std::string said = environment("LOCKSTEP_PLAN_CACHE");
  if (said == "off") return "";
  if (!said.empty()) return said;
  // The XDG base directory specification: a relative path counts as unset.
  if (const std::string cache = environment("XDG_CACHE_HOME"); cache.starts_with('/')) return cache + "/lockstep";
  if (const std::string home = environment("HOME"); !home.empty()) return home + "/.cache/lockstep";
  return "";
}

}  // namespace

PlanSettings plan_settings() {
  PlanSettings settings{.folder = folder()};
  const std::string autotune = environment("LOCKSTEP_AUTOTUNE");
  settings.autotune = autotune == "on";
  if (!settings.autotune && !autotune.empty() && autotune != "off") {
    throw UsageError("LOCKSTEP_AUTOTUNE must be on or off, found \"" + autotune + "\"");
  }
  if (settings.autotune && settings.folder.empty()) {
    throw UsageError("LOCKSTEP_AUTOTUNE=on without a plan cache: timing may choose differently in every run",
                     "Set LOCKSTEP_PLAN_CACHE to a folder that the next run sees too.");
  }
  return settings;
}

}  // namespace lockstep::kernels
