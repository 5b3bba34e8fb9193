// SPDX-License-Identifier: Apache-2.0
#include "comm/group/launcher_variables.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "runtime/base/error.h"

namespace lockstep::comm {

namespace {

const char* whole_set(std::string_view name) {
  if (name.starts_with("SLURM_")) {
    return "srun sets it for each task: hand all of Slurm's variables on to the ranks, into containers too.";
  }
  return "torchrun sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Set them all, or "
         "none for a lone process.";
}

}  // namespace

bool is_set(const char* name) { return std::getenv(name) != nullptr; }

std::string text_in(const char* name) {
  const char* const text = std::getenv(name);
  if (text != nullptr && *text != '\0') return text;
  throw UsageError(
      fmt::format("environment variable {} is {}, where others say that this is one of several ranks: it would "
                  "train alone",
                  name, text == nullptr ? "not set" : "empty"),
      whole_set(name));
}

int integer_in(const char* name) {
  const std::string text = text_in(name);
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value >= 0) return value;
  throw UsageError(fmt::format("environment variable {} is \"{}\", where a launcher puts a count", name, text),
                   "Unset it, or start the ranks with mpirun, srun, torchrun or lockstep train --nproc.");
}

int integer_in(const char* name, int fallback) { return is_set(name) ? integer_in(name) : fallback; }

}  // namespace lockstep::comm
