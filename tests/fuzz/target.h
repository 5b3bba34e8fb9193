// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace lockstep::fuzz {

/// A parser of what others may have written, as libFuzzer and the suite's mutations call it. NAME_fuzz.cpp defines
/// `Target NAME_target()`, and CMake finds it.
struct Target {
  /// Takes any bytes: it may refuse them by the parser's typed error, which it catches, and does nothing else but
  /// succeed.
  void (*parse)(std::string_view bytes) = nullptr;
  std::vector<std::string> seeds;                       ///< valid inputs, from which both start
  int rounds = 30'000;                                  ///< mutations of each seed in the suite
  std::vector<std::string> hostile = {};                ///< what no mutation makes: deep nesting
  bool (*is_valid)(const std::string& seed) = nullptr;  ///< whether a seed is what it should be
};

struct NamedTarget {
  const char* name;
  Target (*make)();
};
/// All of them, by their files' names.
const std::vector<NamedTarget>& all_targets();

/// Hands `parse` a file of these bytes that never touches a disk.
template <class Parse>
void with_file(std::string_view bytes, Parse&& parse) {
  const int descriptor = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (::write(descriptor, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) {
    try {
      parse("/proc/self/fd/" + std::to_string(descriptor));
    } catch (const StorageError&) {
    }
  }
  ::close(descriptor);
}

}  // namespace lockstep::fuzz
