// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/stream.h"

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "runtime/tensor/gpu.h"

namespace lockstep {

namespace {

/// The calling thread: everything has happened as soon as it is asked for.
class CallingThreadStream final : public StreamImpl {
 public:
  Device device() const override { return kCpu; }
  void enqueue(std::function<void()> work) override { work(); }
  void wait(const Event& event) override { event.synchronize(); }
  Event record() override { return {}; }
  void synchronize() override {}
};

/// Pieces of work in order, run one at a time by the threads that serve or wait. It outlives its stream where events or
/// the work itself still refer to it.
class WorkQueue {
 public:
  void enqueue(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
      ++enqueued_;
    }
    changed_.notify_one();
  }

  std::uint64_t enqueued() {
    const std::lock_guard lock(mutex_);
    return enqueued_;
  }

  bool finished(std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    return finished_ >= count;
  }

  /// Returns when the first `count` pieces of work are done, running queued ones while no other thread does.
  void run_until(std::uint64_t count) {
    std::unique_lock lock(mutex_);
    while (finished_ < count) {
      if (!running_ && !queue_.empty()) {
        run_front(lock);
      } else {
        changed_.wait(lock);
      }
    }
    // The failure stays: whatever else waits for work behind it learns of it too.
    if (failure_ && failed_ <= count) std::rethrow_exception(failure_);
  }

  /// Runs work as it comes until stop() was called and nothing is left.
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !running_ && (stopping_ || !queue_.empty()); });
      if (queue_.empty()) return;
      run_front(lock);
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
  }

  /// Whether the calling thread is inside a piece of this queue's work.
  bool is_running_here() {
    const std::lock_guard lock(mutex_);
    return running_ && runner_ == std::this_thread::get_id();
  }

 private:
  void run_front(std::unique_lock<std::mutex>& lock) {
    running_ = true;
    runner_ = std::this_thread::get_id();
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    const bool skip = failure_ != nullptr;
    lock.unlock();
    std::exception_ptr failure;
    if (!skip) {
      try {
        work();
      } catch (...) {
        failure = std::current_exception();
      }
    }
    work = nullptr;  // what it captured is released before anyone is told that it is done
    lock.lock();
    running_ = false;
    ++finished_;
    if (failure) {
      failure_ = failure;
      failed_ = finished_;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::uint64_t enqueued_ = 0;
  std::uint64_t finished_ = 0;
  bool running_ = false;
  std::thread::id runner_;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::uint64_t failed_ = 0;  ///< which piece of work threw, counted from 1
};

class WorkerEvent final : public EventImpl {
 public:
  explicit WorkerEvent(std::shared_ptr<WorkQueue> queue) : queue_(std::move(queue)), count_(queue_->enqueued()) {}
  void synchronize() override { queue_->run_until(count_); }
  bool done() override { return queue_->finished(count_); }

 private:
  std::shared_ptr<WorkQueue> queue_;
  std::uint64_t count_;
};

/// A queue served by one thread, or by the thread that waits for it.
class WorkerStream final : public StreamImpl {
 public:
  explicit WorkerStream(const std::string& name) : thread_([queue = queue_] { queue->serve(); }) {
    pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
  }

  ~WorkerStream() override {
    queue_->stop();
    // Work that held the last handle of its own stream cannot wait for the queue of which it is a part.
    if (queue_->is_running_here()) {
      thread_.detach();
    } else {
      thread_.join();
    }
  }

  Device device() const override { return kCpu; }
  void enqueue(std::function<void()> work) override { queue_->enqueue(std::move(work)); }
  void wait(const Event& event) override {
    if (event.impl()) queue_->enqueue([event] { event.synchronize(); });
  }
  Event record() override { return Event(std::make_shared<WorkerEvent>(queue_)); }
  void synchronize() override { queue_->run_until(queue_->enqueued()); }

 private:
  std::shared_ptr<WorkQueue> queue_ = std::make_shared<WorkQueue>();
  std::thread thread_;
};

}  // namespace

void Event::synchronize() const {
  if (impl_) impl_->synchronize();
}

bool Event::done() const { return !impl_ || impl_->done(); }

Stream Stream::calling_thread() {
  static const std::shared_ptr<StreamImpl> stream = std::make_shared<CallingThreadStream>();
  return Stream(stream);
}

Stream Stream::worker(const std::string& name) { return Stream(std::make_shared<WorkerStream>(name)); }

Stream Stream::current(Device device) {
  return device.type == DeviceType::kCpu ? calling_thread() : gpu::current_stream(device);
}

Stream Stream::create(Device device, const std::string& name) {
  return device.type == DeviceType::kCpu ? worker(name)
                                         : gpu::make_stream(device, name, gpu::StreamPriority::kGreatest);
}

Device Stream::device() const { return impl_->device(); }
void Stream::enqueue(std::function<void()> work) const { impl_->enqueue(std::move(work)); }
void Stream::wait(const Event& event) const { impl_->wait(event); }
Event Stream::record() const { return impl_->record(); }
void Stream::synchronize() const { impl_->synchronize(); }

}  // namespace lockstep
