// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/files/storage_calls.h"

#include <map>
#include <mutex>

namespace lockstep {
namespace {

/// The calls in the order in which they began. Never destroyed: a thread whose call does not return outlives main().
struct Calls {
  std::mutex mutex;
  std::uint64_t next_id = 0;
  std::map<std::uint64_t, PendingCall> pending;
};

Calls& calls() {
  static Calls* const all = new Calls;
  return *all;
}

}  // namespace

CallUnderWay::CallUnderWay(StorageOperation operation, const std::string& path) {
  Calls& all = calls();
  const std::lock_guard lock(all.mutex);
  id_ = all.next_id++;
  all.pending.emplace(id_, PendingCall{operation, path, std::chrono::steady_clock::now()});
}

CallUnderWay::~CallUnderWay() {
  Calls& all = calls();
  const std::lock_guard lock(all.mutex);
  all.pending.erase(id_);
}

std::optional<PendingCall> oldest_pending_call() {
  Calls& all = calls();
  const std::lock_guard lock(all.mutex);
  if (all.pending.empty()) return std::nullopt;
  return all.pending.begin()->second;
}

}  // namespace lockstep
