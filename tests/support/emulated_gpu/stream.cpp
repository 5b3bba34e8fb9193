// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tensor/gpu.h"
#include "runtime/tensor/gpu_graphs.h"
#include "runtime/tensor/gpu_waits.h"
#include "tests/support/emulated_gpu/emulation.h"

namespace lockstep::gpu {

namespace {

void refuse_while_recording(const char* what) {
  if (emulation::recording()) throw EnvironmentError(std::string(what) + " while a graph is captured");
}

/// A point in the work of a thread; one that was recorded is only an order, which the recording has anyway.
class EmulatedEvent final : public EventImpl {
 public:
  EmulatedEvent(Device device, Event event, bool recorded)
      : device_(device), event_(std::move(event)), recorded_(recorded) {}

  void synchronize() override {
    if (recorded_) throw EnvironmentError("the host waits for an event that was recorded into a graph");
    if (done()) return;
    refuse_while_recording("the host waits for an event");
    wait_until(device_, [this] { return event_.done(); });
    event_.synchronize();
  }
  bool done() override {
    const bool reached = event_.done();
    if (reached) rethrow_failure(device_);
    return reached;
  }
  const Event& event() const { return event_; }
  bool recorded() const { return recorded_; }

 private:
  Device device_;
  Event event_;
  bool recorded_;
};

class EmulatedStream final : public StreamImpl, public std::enable_shared_from_this<EmulatedStream> {
 public:
  EmulatedStream(Device device, const std::string& name, StreamPriority priority)
      : device_(device), priority_(priority), thread_(Stream::worker("gpu " + name)) {}

  Device device() const override { return device_; }
  void enqueue(std::function<void()> work) override {
    const ScopedStream scope{Stream(shared_from_this())};
    work();
  }
  void wait(const Event& event) override {
    if (!event.impl()) return;
    const auto* other = dynamic_cast<const EmulatedEvent*>(event.impl().get());
    if (other == nullptr) {
      event.synchronize();
    } else if (!emulation::recording()) {
      if (other->recorded()) throw EnvironmentError("a stream waits for an event that was recorded into a graph");
      thread_.wait(other->event());
    }
  }
  Event record() override {
    const bool recorded = emulation::recording();
    return Event(std::make_shared<EmulatedEvent>(device_, recorded ? Event() : thread_.record(), recorded));
  }
  void synchronize() override {
    refuse_while_recording("the host waits for a stream");
    const Event here = thread_.record();
    wait_until(device_, [&] { return here.done(); });
    here.synchronize();
  }
  StreamPriority priority() const { return priority_; }
  const Stream& thread() const { return thread_; }

 private:
  Device device_;
  StreamPriority priority_;
  Stream thread_;
};

const EmulatedStream& emulated(const Stream& stream) {
  const auto* found = dynamic_cast<const EmulatedStream*>(stream.impl().get());
  if (found == nullptr) throw UsageError("a stream of " + str(stream.device()) + " was used for work on a GPU");
  return *found;
}

const Stream& thread_of(const Stream& stream) { return emulated(stream).thread(); }

}  // namespace

/// What a thread that captures has appended so far.
struct EmulatedRecording {
  std::vector<std::function<void()>> work;
  std::size_t memory_work = 0;  ///< of work: pieces that stand for memory given and given back
  std::vector<std::function<void()>> releases;
  ~EmulatedRecording() {
    for (const auto& release : releases) release();
  }
};

namespace {

thread_local EmulatedRecording* recorder = nullptr;
thread_local EmulatedRecording* recorder_aside = nullptr;

void require_pinned_while_recording(const void* data) {
  if (!emulation::recording() || emulation::is_known(data)) return;
  throw UsageError("a graph was to record a copy from or to host memory that is not pinned");
}

}  // namespace

namespace emulation {

void append_memory_work(const Stream& stream, std::function<void()> work) {
  if (recorder != nullptr) ++recorder->memory_work;
  append(stream, std::move(work));
}

void append(const Stream& stream, std::function<void()> work) {
  if (recorder != nullptr) {
    recorder->work.push_back(std::move(work));
  } else {
    thread_of(stream).enqueue(std::move(work));
  }
}

Tensor on_host(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  return Tensor::view(Storage(tensor.data(), tensor.bytes(), kCpu, nullptr), 0, tensor.shape(), tensor.dtype());
}

bool recording() { return recorder != nullptr; }

StreamPriority priority_of(const Stream& stream) { return emulated(stream).priority(); }

void set_recording_aside(bool aside) {
  if (aside)
    recorder_aside = std::exchange(recorder, nullptr);
  else
    recorder = std::exchange(recorder_aside, nullptr);
}

void when_graph_ends(std::function<void()> release) { recorder->releases.push_back(std::move(release)); }

}  // namespace emulation

struct Moment::Impl {
  std::chrono::steady_clock::time_point reached;
};

Moment::Moment(const Stream& stream) : impl_(std::make_shared<Impl>()) {
  rethrow_failure(stream.device());
  refuse_while_recording("a moment is asked for");
  emulation::append(stream, [impl = impl_] { impl->reached = std::chrono::steady_clock::now(); });
}

std::chrono::nanoseconds Moment::since(const Moment& earlier) const { return impl_->reached - earlier.impl_->reached; }

struct Graph::Impl {
  explicit Impl(Device on) : device(on), living(on, [this] { give_up(); }) { describe(on); }

  void give_up() {
    const std::lock_guard lock(mutex);
    recording = nullptr;
    given_up = true;
  }

  Device device;
  std::optional<Stream> launched_on;
  std::mutex mutex;                              ///< guards what follows
  std::shared_ptr<EmulatedRecording> recording;  ///< work on its way keeps it, too
  bool given_up = false;
  LivingGraph living;  ///< last: the first to go
};

Graph::Graph(Device device) : impl_(std::make_unique<Impl>(device)) {}

Graph::~Graph() {
  if (!impl_->launched_on) return;
  try {
    thread_of(*impl_->launched_on).synchronize();
  } catch (...) {
    // Whoever waits for the stream's work learns of it.
  }
}

void Graph::capture(const std::function<void()>& work) {
  if (impl_->recording) throw UsageError("a graph was captured twice");
  const auto recording = std::make_shared<EmulatedRecording>();
  recorder = recording.get();
  try {
    work();
  } catch (...) {
    recorder = nullptr;
    throw;
  }
  recorder = nullptr;
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->given_up) impl_->recording = recording;
}

void Graph::launch() {
  rethrow_failure(impl_->device);
  impl_->launched_on = current_stream(impl_->device);
  const std::lock_guard lock(impl_->mutex);
  if (impl_->given_up) throw UsageError("a graph that was given up was launched");
  emulation::append(*impl_->launched_on, [recording = impl_->recording] {
    for (const auto& work : recording->work) work();
  });
}

std::size_t Graph::nodes() const {
  return impl_->recording ? impl_->recording->work.size() - impl_->recording->memory_work : 0;
}

Stream make_stream(Device device, const std::string& name, StreamPriority priority) {
  emulation::touch(device);
  return Stream(std::make_shared<EmulatedStream>(device, name, priority));
}

void copy(void* to, const void* from, std::size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  require_pinned_while_recording(to);
  require_pinned_while_recording(from);
  if (emulation::is_known(from)) {
    const bool lands = !emulation::is_known(to);
    // Memory that is not pinned has been written when the call returns: the caller may leave, whatever fails.
    if (lands) stream.synchronize();
    emulation::append(stream, [=] { std::memmove(to, from, bytes); });
    if (lands) thread_of(stream).synchronize();
    return;
  }
  // Memory that is not pinned has been read when the call returns.
  const auto* begin = static_cast<const std::byte*>(from);
  emulation::append(stream, [to, staged = std::vector<std::byte>(begin, begin + bytes)] {
    std::memcpy(to, staged.data(), staged.size());
  });
}

void zero(void* to, std::size_t bytes, const Stream& stream) {
  if (bytes > 0) emulation::append(stream, [=] { std::memset(to, 0, bytes); });
}

}  // namespace lockstep::gpu
