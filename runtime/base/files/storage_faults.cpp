// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/files/storage_faults.h"

#include <atomic>
#include <utility>

namespace lockstep {
namespace {

std::atomic<bool> armed{false};
std::atomic<std::uint64_t> calls_made{0};

StorageHook& installed() {
  static StorageHook hook;
  return hook;
}

}  // namespace

const char* verb_of(StorageOperation operation) {
  switch (operation) {
    case StorageOperation::kOpen:
      return "open";
    case StorageOperation::kRead:
      return "read";
    case StorageOperation::kWrite:
      return "write";
    case StorageOperation::kSync:
      return "fsync";
    case StorageOperation::kClose:
      return "close";
    case StorageOperation::kRename:
      return "rename";
    case StorageOperation::kUnlink:
      return "delete";
    case StorageOperation::kMakeDirectory:
      return "create the directory";
    case StorageOperation::kRemoveDirectory:
      return "delete the directory";
  }
  return "use";
}

void set_storage_hook(StorageHook hook) {
  installed() = std::move(hook);
  calls_made = 0;
  armed = static_cast<bool>(installed());
}

StorageFault fault_before(StorageOperation operation, const std::string& path) {
  if (!armed) return {};
  return installed()({operation, path, calls_made++});
}

}  // namespace lockstep
