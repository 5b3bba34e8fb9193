// SPDX-License-Identifier: Apache-2.0
#include "comm/group/transport.h"

#include <cstring>

namespace lockstep::comm {

Storage Transport::allocate(std::size_t bytes) {
  meet({.kind = OperationKind::kAllocate, .count = static_cast<std::int64_t>(bytes)});
  return private_memory(bytes);
}

Storage private_memory(std::size_t bytes) {
  Storage storage = Storage::allocate(bytes, kCpu);
  std::memset(storage.data(), 0, bytes);
  return storage;
}

}  // namespace lockstep::comm
