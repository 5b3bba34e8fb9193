// SPDX-License-Identifier: Apache-2.0
#include "comm/group/nccl/nccl_comm.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "comm/group/device_waits.h"
#include "comm/group/nccl/patience.h"
#include "runtime/base/core_yield.h"
#include "runtime/base/error.h"
#include "runtime/tensor/cuda/check.h"

namespace lockstep::comm {

namespace {

using std::chrono::milliseconds;

constexpr const char* kAdvice = "Look for the first error of the other ranks; NCCL_DEBUG=INFO says more.";
/// A wait first lends its core to the thread that NCCL enqueues with, then sleeps.
constexpr auto kNcclYielding = std::chrono::milliseconds(1);
constexpr auto kNcclNap = std::chrono::microseconds(50);

/// A channel's kernels occupy at most so many multiprocessors: three channels fit on a device of 108 at once.
constexpr int kMaxBlocksOfNccl = 32;

ncclConfig_t configuration() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.maxCTAs = kMaxBlocksOfNccl;
  return config;
}

/// rank 0's id, for the others.
std::string make_id() {
  ncclUniqueId id;
  const ncclResult_t result = ncclGetUniqueId(&id);
  if (result != ncclSuccess) {
    throw EnvironmentError(std::string("ncclGetUniqueId: ") + ncclGetErrorString(result),
                           "Where the machine has several networks, NCCL_SOCKET_IFNAME names the one to use.");
  }
  return {id.internal, sizeof id.internal};
}

}  // namespace

NcclComm::NcclComm(std::shared_ptr<Communicator> host, Device device, std::string channel, milliseconds timeout)
    : host_(std::move(host)),
      device_(device),
      timeout_(timeout),
      handle_(std::make_shared<Handle>(std::move(channel))) {
  // An error of rank 0 must reach the others, which wait for its id.
  std::string id;
  std::exception_ptr failure;
  if (host_->rank() == 0) {
    try {
      id = make_id();
    } catch (const EnvironmentError&) {
      failure = std::current_exception();
    }
  }
  id = host_->broadcast_text(id, 0);
  if (failure) std::rethrow_exception(failure);
  if (id.size() != NCCL_UNIQUE_ID_BYTES) throw PeerError("rank 0 cannot start NCCL", "Look for the error there.");
  try {
    start(id);
  } catch (...) {
    abort()();
    throw;
  }
}

void NcclComm::start(const std::string& id) {
  const gpu::DeviceGuard guard(device_);
  ncclUniqueId unique;
  std::memcpy(unique.internal, id.data(), sizeof unique.internal);
  ncclConfig_t config = configuration();
  config.commName = handle_->name.c_str();
  ncclResult_t result = ncclSuccess;
  {
    const std::lock_guard lock(handle_->mutex);
    result = ncclCommInitRankConfig(&handle_->comm, host_->size(), unique, host_->rank(), &config);
  }
  if (result != ncclSuccess && result != ncclInProgress) {
    throw EnvironmentError(
        "NCCL cannot start channel \"" + handle_->name + "\" on " + str(device_) + ": " + reason(result), kAdvice);
  }
  settle({.kind = OperationKind::kNewChannel}, 0, result);
}

NcclComm::NcclComm(std::shared_ptr<Communicator> host, Device device, std::string channel, milliseconds timeout,
                   ncclComm_t native)
    : host_(std::move(host)),
      device_(device),
      timeout_(timeout),
      handle_(std::make_shared<Handle>(std::move(channel))) {
  handle_->comm = native;
}

ncclComm_t NcclComm::split(int color, int key, std::int64_t number) {
  ncclConfig_t config = configuration();
  run({.kind = OperationKind::kNewChannel}, number, [&](ncclComm_t comm) {
    return ncclCommSplit(comm, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &handle_->part, &config);
  });
  return handle_->take(&Handle::part);
}

NcclComm::~NcclComm() { abort()(); }

void NcclComm::leave() {
  run({.kind = OperationKind::kLeave}, kLast, [](ncclComm_t comm) { return ncclCommFinalize(comm); });
  const gpu::DeviceGuard guard(device_);
  ncclCommDestroy(handle_->take(&Handle::comm));
}

ncclComm_t NcclComm::Handle::take(ncclComm_t Handle::*which) {
  const std::lock_guard lock(mutex);
  return std::exchange(this->*which, nullptr);
}

std::function<void()> NcclComm::abort() {
  return [handle = handle_, device = device_] {
    const ncclComm_t comm = handle->take(&Handle::comm);
    if (comm == nullptr) return;
    gpu::settle_thread(device);  // a new thread's would be another one, on which CUDA would make a context
    ncclCommAbort(comm);
    // NCCL's own threads have ended: none writes it any more.
    if (const ncclComm_t part = handle->take(&Handle::part); part != nullptr) ncclCommAbort(part);
  };
}

void NcclComm::run(const Operation& operation, std::int64_t number, const Call& call) {
  const gpu::DeviceGuard guard(device_);
  ncclResult_t result = ncclSuccess;
  {
    const std::lock_guard lock(handle_->mutex);
    require_open(describe(operation, handle_->name));
    result = call(handle_->comm);
  }
  settle(operation, number, result);
}

/// Waits until NCCL's own thread has finished the call: microseconds, longer where it first connects two ranks.
void NcclComm::settle(const Operation& operation, std::int64_t number, ncclResult_t result) {
  const auto began = Clock::now();
  auto inspected = began;
  while (result == ncclInProgress) {
    const auto now = Clock::now();
    if (now - began >= kNcclYielding || !yield_core()) std::this_thread::sleep_for(kNcclNap);
    if (now - inspected >= kInspection) {
      inspected = now;
      inspect(operation, number, now - began);
    }
    const std::lock_guard lock(handle_->mutex);
    require_open(describe(operation, handle_->name));
    const ncclResult_t asked = ncclCommGetAsyncError(handle_->comm, &result);
    if (asked != ncclSuccess) result = asked;
  }
  if (result == ncclSuccess) return;
  const std::string text = describe(operation, handle_->name) + ": " + reason(result);
  if (result == ncclInvalidUsage || result == ncclInvalidArgument) throw EnvironmentError(text, kAdvice);
  throw PeerError(text, kAdvice);
}

void NcclComm::inspect(const Operation& operation, std::int64_t number, Clock::duration waited) {
  if (waited < patience(timeout_)) return;
  inspect_wait(*host_, operation, number, std::chrono::duration_cast<milliseconds>(waited));
  if (waited < timeout_) return;
  throw PeerError(
      describe(operation, handle_->name) + ": NCCL was not ready within " + std::to_string(timeout_.count()) + " ms",
      kAdvice);
}

void NcclComm::require_sound(const std::string& what) {
  const std::lock_guard lock(handle_->mutex);
  if (handle_->comm == nullptr) return;
  ncclResult_t result = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(handle_->comm, &result);
  if (asked != ncclSuccess) result = asked;
  if (result != ncclSuccess && result != ncclInProgress) throw PeerError(what + ": " + reason(result), kAdvice);
}

void NcclComm::require_open(const std::string& what) const {
  if (handle_->comm == nullptr) throw PeerError(what + ": NCCL was aborted after an earlier error");
}

std::string NcclComm::reason(ncclResult_t result) const {
  std::string text = std::string("NCCL: ") + ncclGetErrorString(result);
  const char* last = ncclGetLastError(nullptr);
  if (last != nullptr && *last != '\0') text += std::string(" (") + last + ")";
  return text;
}

}  // namespace lockstep::comm
