// SPDX-License-Identifier: Apache-2.0
#include "comm/group/device_watch/device_watchdog.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <system_error>
#include <utility>

#include "runtime/tensor/gpu.h"

namespace lockstep::comm {

namespace {

constexpr auto kPoll = std::chrono::milliseconds(10);
/// An abort takes milliseconds. One that takes longer waits for a device that does not answer.
constexpr auto kAbortTime = std::chrono::seconds(20);

Device device_of(int index) { return {DeviceType::kCuda, index}; }

}  // namespace

DeviceWatchdog::DeviceWatchdog()
    : inspector_([this](const std::stop_token& stop) { inspect_works(stop); }),
      looker_([this](const std::stop_token& stop) { look_at_works(stop); }) {
  pthread_setname_np(inspector_.native_handle(), "device watchdog");
  pthread_setname_np(looker_.native_handle(), "device looks");
}

DeviceWatchdog::~DeviceWatchdog() {
  inspector_.request_stop();
  looker_.request_stop();
  inspector_.join();
  looker_.join();
  std::unique_lock lock(aborts_->mutex);
  if (!aborts_->changed.wait_for(lock, kAbortTime, [this] { return aborts_->running == 0; })) {
    spdlog::error("a device did not let go of {} communicators within {} s of their abort", aborts_->running,
                  kAbortTime.count());
  }
  for (const int index : failed_devices_) gpu::set_failure(device_of(index), nullptr);
}

std::shared_ptr<DeviceWatchdog> DeviceWatchdog::of_process() {
  static std::mutex mutex;
  static std::weak_ptr<DeviceWatchdog> known;
  const std::lock_guard lock(mutex);
  std::shared_ptr<DeviceWatchdog> watchdog = known.lock();
  if (!watchdog) known = watchdog = std::make_shared<DeviceWatchdog>();
  return watchdog;
}

void DeviceWatchdog::add(WatchedWork& work) {
  const std::lock_guard lock(mutex_);
  if (failed_) std::rethrow_exception(failure_);
  works_.push_back(&work);
}

void DeviceWatchdog::remove(WatchedWork& work) {
  {
    const std::lock_guard lock(mutex_);
    std::erase(works_, &work);
  }
  const std::lock_guard no_look(looking_);
}

void DeviceWatchdog::fail(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  fail_locked(failure);
}

void DeviceWatchdog::fail_locked(const std::exception_ptr& failure) {
  if (failed_) return;
  failure_ = failure;
  failed_ = true;
  for (const WatchedWork* work : works_) failed_devices_.insert(work->device().index);
  // First: whoever waits must learn why its work ended.
  for (const int index : failed_devices_) gpu::set_failure(device_of(index), failure);
  for (WatchedWork* work : works_) start(work->abort());
  for (const int index : failed_devices_) start([index] { gpu::give_up_graphs(device_of(index)); });
}

void DeviceWatchdog::start(std::function<void()> abort) {
  {
    const std::lock_guard lock(aborts_->mutex);
    ++aborts_->running;
  }
  const auto ended = [aborts = aborts_] {
    const std::lock_guard lock(aborts->mutex);
    --aborts->running;
    aborts->changed.notify_all();
  };
  try {
    std::thread([ended, abort = std::move(abort)]() mutable {
      abort();
      abort = nullptr;
      ended();
    }).detach();
  } catch (const std::system_error& error) {
    // The others are aborted all the same, and whoever waits has been told.
    spdlog::error("cannot start a thread for an abort: {}", error.what());
    ended();
  }
}

void DeviceWatchdog::require_working() {
  if (!failed_) return;
  const std::lock_guard lock(mutex_);
  std::rethrow_exception(failure_);
}

void DeviceWatchdog::inspect_works(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, stop, kPoll, [&stop] { return stop.stop_requested(); })) {
    if (failed_) continue;
    try {
      for (WatchedWork* work : works_) work->inspect();
    } catch (...) {
      fail_locked(std::current_exception());
    }
  }
}

void DeviceWatchdog::look_at_works(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, stop, kPoll, [&stop] { return stop.stop_requested(); })) {
    lock.unlock();
    {
      const std::lock_guard looking(looking_);
      lock.lock();
      const std::vector<WatchedWork*> works = works_;
      lock.unlock();
      for (WatchedWork* work : works) work->look();
    }
    lock.lock();
  }
}

}  // namespace lockstep::comm
