// SPDX-License-Identifier: Apache-2.0
// A build without CUDA: no devices.
#include "runtime/tensor/gpu.h"

#include "runtime/base/error.h"

namespace lockstep::gpu {

namespace {

[[noreturn]] void refuse() {
  throw EnvironmentError(why_none(), "Use --device cpu, or build where the CUDA toolkit is installed.");
}

}  // namespace

int device_count() { return 0; }
std::string why_none() { return "this build has no CUDA"; }
Description describe(Device) { refuse(); }
std::size_t free_memory(Device) { refuse(); }
void use_device(Device) { refuse(); }
int oldest_compute_capability() { return 0; }
std::string runtime_version() { return {}; }
std::string driver_version() { return {}; }
Storage allocate(std::size_t, Device device) {
  throw EnvironmentError("there is no " + str(device) + ": " + why_none(), "Use --device cpu.");
}
Storage allocate_pinned(std::size_t) { refuse(); }
bool is_pinned(const void*) { return false; }
std::size_t reserved_memory(Device) { return 0; }
Stream make_stream(Device, const std::string&, StreamPriority) { refuse(); }
void copy(void*, const void*, std::size_t, const Stream&) { refuse(); }
void zero(void*, std::size_t, const Stream&) { refuse(); }
struct Moment::Impl {};
Moment::Moment(const Stream&) { refuse(); }
std::chrono::nanoseconds Moment::since(const Moment&) const { refuse(); }
struct Graph::Impl {};
Graph::Graph(Device) { refuse(); }
Graph::~Graph() = default;
void Graph::capture(const std::function<void()>&) { refuse(); }
void Graph::launch() { refuse(); }
std::size_t Graph::nodes() const { refuse(); }
void release_cached(Device) {}

}  // namespace lockstep::gpu
