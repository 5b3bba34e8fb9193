// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

namespace lockstep {

enum class StorageOperation { kOpen, kRead, kWrite, kSync, kClose, kRename, kUnlink, kMakeDirectory, kRemoveDirectory };

/// The operation as an error says it: "cannot <this> PATH".
const char* verb_of(StorageOperation operation);

/// A system call about to be made.
struct StorageCall {
  StorageOperation operation;
  const std::string& path;
  std::uint64_t index;  ///< calls since the hook was set
};

/// The effect of the hook on a call: none, a failure, or a read or write of fewer bytes than were asked for.
struct StorageFault {
  int error = 0;  ///< an errno; the call is not made
  std::size_t at_most = std::numeric_limits<std::size_t>::max();
};

using StorageHook = std::function<StorageFault(const StorageCall&)>;

/// Calls `hook` before every system call that the checkpoint code makes on files, so that tests fail, shorten or never
/// return from any one of them. An empty hook removes it. Process-wide; set it while no storage code runs.
void set_storage_hook(StorageHook hook);

/// Asks the hook, if there is one.
StorageFault fault_before(StorageOperation operation, const std::string& path);

}  // namespace lockstep
