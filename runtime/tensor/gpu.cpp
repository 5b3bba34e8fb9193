// SPDX-License-Identifier: Apache-2.0
// The part of gpu.h that does not depend on how a GPU is reached.
#include "runtime/tensor/gpu.h"

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "runtime/base/core_yield.h"
#include "runtime/tensor/gpu_graphs.h"
#include "runtime/tensor/gpu_streams.h"
#include "runtime/tensor/gpu_waits.h"

namespace lockstep::gpu {

namespace {

std::atomic<std::uint64_t> waits = 0;

/// A wait first yields its core to others; one that takes longer sleeps.
constexpr auto kYielding = std::chrono::milliseconds(1);
constexpr auto kNap = std::chrono::microseconds(50);

/// The exceptions that set_failure() was given, by device: its work was broken off.
struct Failures {
  std::atomic<bool> any = false;
  std::mutex mutex;
  std::map<int, std::exception_ptr> by_device;
};

Failures& failures() {
  static Failures& instance = *new Failures;  // never destroyed: a watchdog may be the last to end
  return instance;
}

struct LivingGraphs {
  std::mutex mutex;
  std::set<LivingGraph*> graphs;
};

LivingGraphs& living_graphs() {
  static LivingGraphs& instance = *new LivingGraphs;  // never destroyed, as the failures
  return instance;
}

/// Each thread's stream by device, made when it is first asked for.
std::map<int, Stream>& streams_of_thread() {
  thread_local std::map<int, Stream> streams;
  return streams;
}

}  // namespace

Stream current_stream(Device device) {
  auto& streams = streams_of_thread();
  const auto found = streams.find(device.index);
  if (found != streams.end()) return found->second;
  return streams.emplace(device.index, make_stream(device, "", StreamPriority::kLeast)).first->second;
}

ScopedStream::ScopedStream(const Stream& stream) : previous_(current_stream(stream.device())) {
  streams_of_thread().at(stream.device().index) = stream;
}

ScopedStream::~ScopedStream() { streams_of_thread().at(previous_.device().index) = previous_; }

StreamsOfThread::StreamsOfThread() : streams_(streams_of_thread()) {}

void StreamsOfThread::run(const std::function<void()>& work) {
  struct Exchange {
    std::map<int, Stream>& streams;
    explicit Exchange(std::map<int, Stream>& mine) : streams(mine) { streams.swap(streams_of_thread()); }
    ~Exchange() { streams.swap(streams_of_thread()); }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
  };
  const Exchange here(streams_);
  work();
}

void StreamsOfThread::adopt() const { streams_of_thread() = streams_; }

void set_failure(Device device, std::exception_ptr failure) {
  const std::lock_guard lock(failures().mutex);
  if (failure) {
    failures().by_device[device.index] = std::move(failure);
  } else {
    failures().by_device.erase(device.index);
  }
  failures().any.store(!failures().by_device.empty(), std::memory_order_release);
}

void rethrow_failure(Device device) {
  if (!failures().any.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(failures().mutex);
  const auto found = failures().by_device.find(device.index);
  if (found != failures().by_device.end()) std::rethrow_exception(found->second);
}

LivingGraph::LivingGraph(Device device, std::function<void()> give_up) : device_(device), give_up_(std::move(give_up)) {
  const std::lock_guard lock(living_graphs().mutex);
  living_graphs().graphs.insert(this);
}

LivingGraph::~LivingGraph() {
  const std::lock_guard lock(living_graphs().mutex);
  living_graphs().graphs.erase(this);
}

void give_up_graphs(Device device) {
  const std::lock_guard lock(living_graphs().mutex);
  for (const LivingGraph* graph : living_graphs().graphs) {
    if (graph->device() == device) graph->give_up();
  }
}

void wait_until(Device device, const std::function<bool()>& done) {
  count_host_wait();
  const auto began = std::chrono::steady_clock::now();
  while (!done()) {
    rethrow_failure(device);
    if (std::chrono::steady_clock::now() - began >= kYielding || !yield_core()) std::this_thread::sleep_for(kNap);
  }
  rethrow_failure(device);
}

void count_host_wait() { waits.fetch_add(1, std::memory_order_relaxed); }
std::uint64_t host_waits() { return waits.load(std::memory_order_relaxed); }

}  // namespace lockstep::gpu
