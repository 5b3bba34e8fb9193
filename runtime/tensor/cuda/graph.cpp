// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tensor/cuda/allocator.h"
#include "runtime/tensor/cuda/capture.h"
#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/cuda/stream.h"
#include "runtime/tensor/gpu.h"
#include "runtime/tensor/gpu_graphs.h"
#include "runtime/tensor/gpu_waits.h"

namespace lockstep::gpu {

namespace {

/// A capture that is under way on a stream. Left early, it is broken off.
class Capture {
 public:
  Capture(cudaStream_t stream, CudaAllocator::Pool& pool) : stream_(stream), pool_(pool) {
    // Relaxed: NCCL and the allocator call CUDA on their own account meanwhile.
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
    pool_.open(stream_);
    capturing() = true;
  }
  ~Capture() {
    if (!capturing()) return;
    leave();
    cudaGraph_t broken_off = nullptr;
    cudaStreamEndCapture(stream_, &broken_off);
    if (broken_off != nullptr) cudaGraphDestroy(broken_off);
    cudaGetLastError();  // what went wrong is on its way as an exception
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  cudaGraph_t end() {
    leave();
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    return graph;
  }

 private:
  void leave() {
    capturing() = false;
    pool_.close(stream_);
  }

  cudaStream_t stream_;
  CudaAllocator::Pool& pool_;
};

/// The number of a graph's nodes that run on the device: kernels, copies and fills. Nodes of events and memory do not.
std::size_t work_of(cudaGraph_t graph) {
  std::size_t count = 0;
  check(cudaGraphGetNodes(graph, nullptr, &count), "cudaGraphGetNodes");
  std::vector<cudaGraphNode_t> nodes(count);
  check(cudaGraphGetNodes(graph, nodes.data(), &count), "cudaGraphGetNodes");
  return static_cast<std::size_t>(std::ranges::count_if(nodes, [](cudaGraphNode_t node) {
    cudaGraphNodeType type{};
    check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
    return type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeMemset;
  }));
}

}  // namespace

struct Graph::Impl {
  explicit Impl(Device on) : device(on), pool(CudaAllocator::of(on)), living(on, [this] { give_up(); }) {}
  ~Impl() {
    settle_thread(device);
    if (launched_on) cudaStreamSynchronize(native(*launched_on));
    destroy();
  }

  void give_up() {
    settle_thread(device);
    destroy();
  }

  /// CUDA frees a graph that is on its way when it has ended.
  void destroy() {
    const std::lock_guard lock(mutex);
    given_up = true;
    if (executable != nullptr) cudaGraphExecDestroy(std::exchange(executable, nullptr));
  }

  Device device;
  CudaAllocator::Pool pool;
  std::size_t nodes = 0;
  std::optional<Stream> launched_on;
  std::mutex mutex;  // guards what follows
  cudaGraphExec_t executable = nullptr;
  bool given_up = false;
  LivingGraph living;  // last: the first to go
};

Graph::Graph(Device device) : impl_(std::make_unique<Impl>(device)) {}
Graph::~Graph() = default;

void Graph::capture(const std::function<void()>& work) {
  if (impl_->executable != nullptr) throw UsageError("a graph was captured twice");
  const DeviceGuard guard(impl_->device);
  cudaGraph_t graph = nullptr;
  {
    Capture capture(current(impl_->device), impl_->pool);
    work();
    graph = capture.end();
  }
  const auto owned =
      std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, decltype(&cudaGraphDestroy)>(graph, &cudaGraphDestroy);
  impl_->nodes = work_of(graph);
  cudaGraphExec_t executable = nullptr;
  // Each node with the priority of the stream that it was recorded on, not all with that of the launch.
  check(cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority), "cudaGraphInstantiate");
  bool given_up = false;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->executable = executable;
    given_up = impl_->given_up;
  }
  if (given_up) impl_->destroy();
}

std::size_t Graph::nodes() const { return impl_->nodes; }

void Graph::launch() {
  rethrow_failure(impl_->device);
  const DeviceGuard guard(impl_->device);
  impl_->launched_on = current_stream(impl_->device);
  const std::lock_guard lock(impl_->mutex);
  if (impl_->given_up) throw UsageError("a graph that was given up was launched");
  check(cudaGraphLaunch(impl_->executable, native(*impl_->launched_on)), "cudaGraphLaunch");
}

void release_cached(Device device) { CudaAllocator::of(device).release_cached(); }

}  // namespace lockstep::gpu
