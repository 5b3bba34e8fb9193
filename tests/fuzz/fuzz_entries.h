// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"

// What a fuzzer calls with any bytes: each parser may refuse them with a StorageError, and do nothing else but succeed.

namespace lockstep::checkpoint {

inline void fuzz_safetensors(std::string_view bytes) {
  const int descriptor = ::memfd_create("fuzz", MFD_CLOEXEC);  // a file that never touches a disk
  if (::write(descriptor, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) {
    try {
      const SafetensorsFile file("/proc/self/fd/" + std::to_string(descriptor));
      for (const TensorEntry& entry : file.tensors()) file.read(entry);
    } catch (const StorageError&) {
    }
  }
  ::close(descriptor);
}

/// Both as they come and behind a checksum that fits, since without one nearly nothing reaches the JSON parser.
inline void fuzz_manifest(std::string_view bytes) {
  const std::string sealed =
      std::string(bytes) + ",\n  \"checksum\": \"" + digest_of(std::as_bytes(std::span(bytes))).checksum + "\"\n}\n";
  for (const std::string_view text : {bytes, std::string_view(sealed)}) {
    try {
      parse_manifest(text, "manifest.json");
    } catch (const StorageError&) {
    }
  }
}

}  // namespace lockstep::checkpoint
