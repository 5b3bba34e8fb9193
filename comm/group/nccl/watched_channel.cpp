// SPDX-License-Identifier: Apache-2.0
#include "comm/group/nccl/watched_channel.h"

#include <spdlog/spdlog.h>

#include <exception>
#include <thread>

#include "comm/group/device_waits.h"
#include "comm/group/nccl/patience.h"
#include "runtime/base/error.h"
#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/cuda/stream.h"

namespace lockstep::comm {

namespace {

/// How often to look whether all that was on its way is known to have ended, before a split.
constexpr auto kDraining = std::chrono::milliseconds(1);

bool is_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  gpu::check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

/// While it lives, the calling thread's questions for an event do not end a capture that another thread has begun.
class BesideCaptures {
 public:
  BesideCaptures() { exchange(); }
  ~BesideCaptures() { exchange(); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  void exchange() { cudaThreadExchangeStreamCaptureMode(&mode_); }

  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// An error of the device itself ends the watch: the next call that synchronises throws it.
bool reached(cudaEvent_t event) { return cudaEventQuery(event) != cudaErrorNotReady; }

}  // namespace

WatchedChannel::WatchedChannel(Group group, std::shared_ptr<Communicator> host, std::string name)
    : group_(std::move(group)),
      host_(std::move(host)),
      name_(std::move(name)),
      comm_(host_, group_.device, name_, group_.timeout) {
  group_.watchdog->add(*this);
}

WatchedChannel::WatchedChannel(Group group, std::shared_ptr<Communicator> host, std::string name, ncclComm_t native)
    : group_(std::move(group)),
      host_(std::move(host)),
      name_(std::move(name)),
      comm_(host_, group_.device, name_, group_.timeout, native) {
  group_.watchdog->add(*this);
}

WatchedChannel::~WatchedChannel() {
  leave();
  group_.watchdog->remove(*this);
  gpu::settle_thread(group_.device);
  for (const Watched& watched : watched_) {
    cudaEventDestroy(watched.before);
    cudaEventDestroy(watched.after);
  }
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
}

void WatchedChannel::leave() noexcept {
  if (group_.watchdog->failed()) return;
  try {
    if (std::uncaught_exceptions() > 0)
      throw PeerError("rank " + std::to_string(host_->rank()) + " ends with an error");
    comm_.leave();
  } catch (const Error& error) {
    if (std::uncaught_exceptions() == 0) {
      spdlog::warn("rank {} ends NCCL without the others: {}", host_->rank(), error.what());
    }
    group_.watchdog->fail(std::current_exception());
  }
}

void WatchedChannel::fail() {
  group_.watchdog->fail(std::current_exception());
  group_.watchdog->require_working();
  std::rethrow_exception(std::current_exception());
}

void WatchedChannel::call(const Operation& operation, const NcclComm::Call& function) {
  group_.watchdog->require_working();
  try {
    comm_.run(operation, number_, function);
  } catch (const Error&) {
    fail();
  }
}

void WatchedChannel::enqueue(const Operation& operation, const Stream& stream, const Enqueue& append) {
  const cudaStream_t native = gpu::native(stream);
  launch_watched(operation, native, [&] { call(operation, [&](ncclComm_t comm) { return append(comm, native); }); });
}

void WatchedChannel::watch(const Stream& stream, std::uint64_t step, const std::function<void()>& launch) {
  const Operation operation{.kind = OperationKind::kReplay, .count = static_cast<std::int64_t>(step)};
  launch_watched(operation, gpu::native(stream), launch);
}

std::shared_ptr<WatchedChannel> WatchedChannel::duplicate(const std::string& name) {
  return std::make_shared<WatchedChannel>(group_, host_->duplicate(name), name);
}

std::shared_ptr<WatchedChannel> WatchedChannel::split(int color, int key, const std::string& name) {
  drain();  // NCCL splits a communicator that has nothing on its way
  std::shared_ptr<Communicator> host = host_->split(color, key, name);
  ncclComm_t part = nullptr;
  try {
    part = comm_.split(color, key, number_);
  } catch (const Error&) {
    fail();
  }
  return host ? std::make_shared<WatchedChannel>(group_, std::move(host), name, part) : nullptr;
}

void WatchedChannel::launch_watched(const Operation& operation, cudaStream_t stream,
                                    const std::function<void()>& launch) {
  group_.watchdog->require_working();
  if (is_captured(stream)) {
    launch();
    return;
  }
  const gpu::DeviceGuard guard(group_.device);
  Watched watched{.operation = operation, .number = ++number_};
  watched.before = record(stream);
  try {
    launch();
    watched.after = record(stream);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    events_.push_back(watched.before);
    throw;
  }
  const std::lock_guard lock(mutex_);
  watched_.push_back(watched);
}

cudaEvent_t WatchedChannel::record(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!events_.empty()) {
      event = events_.back();
      events_.pop_back();
    }
  }
  if (event == nullptr) gpu::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  const cudaError_t status = cudaEventRecord(event, stream);
  if (status != cudaSuccess) cudaEventDestroy(event);
  gpu::check(status, "cudaEventRecord");
  return event;
}

void WatchedChannel::drain() {
  while (true) {
    group_.watchdog->require_working();
    {
      const std::lock_guard lock(mutex_);
      if (watched_.empty()) return;
    }
    std::this_thread::sleep_for(kDraining);
  }
}

std::optional<WatchedChannel::Watched> WatchedChannel::begin_look() {
  const std::lock_guard lock(mutex_);
  if (watched_.empty()) return std::nullopt;
  looking_since_ = Clock::now();
  return watched_.front();
}

void WatchedChannel::note(const Watched& oldest, bool began, bool ended) {
  const std::lock_guard lock(mutex_);
  looking_since_.reset();
  Watched& front = watched_.front();  // still the oldest: nobody else takes it away
  if (ended) {
    events_.insert(events_.end(), {oldest.before, oldest.after});
    watched_.pop_front();
  } else if (began && !front.running) {
    // While the stream does its earlier work, no other rank is waited for.
    front.running = true;
    front.began = Clock::now();
  } else if (!began) {
    front.running = false;  // inspect() took it for running, as long as the driver did not answer
  }
}

void WatchedChannel::look() {
  const gpu::DeviceGuard guard(group_.device);
  const BesideCaptures beside_captures;
  for (bool ended = true; ended;) {
    const std::optional<Watched> oldest = begin_look();
    if (!oldest) return;
    ended = reached(oldest->after);
    note(*oldest, ended || oldest->running || reached(oldest->before), ended);
  }
}

void WatchedChannel::inspect() {
  const auto now = Clock::now();
  Watched front;
  {
    const std::lock_guard lock(mutex_);
    if (watched_.empty()) return;
    front = watched_.front();
    // The driver does not answer as long as another thread waits in it for the device: that may be for this work.
    if (!front.running && looking_since_ && now - *looking_since_ >= patience(group_.timeout)) {
      front.running = true;
      front.began = *looking_since_;
    }
  }
  if (now - inspected_ < kInspection) return;
  inspected_ = now;
  const std::string what = describe(front.operation, name_) + ", number " + std::to_string(front.number);
  comm_.require_sound(what);
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - front.began);
  if (!front.running || waited < patience(group_.timeout)) return;
  inspect_wait(*host_, front.operation, front.number, waited);
  if (waited >= group_.timeout) {
    throw PeerError(what + ": it did not complete within " + std::to_string(group_.timeout.count()) + " ms");
  }
}

}  // namespace lockstep::comm
