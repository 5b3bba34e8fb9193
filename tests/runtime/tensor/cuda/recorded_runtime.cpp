// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/tensor/cuda/recorded_runtime.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace lockstep::recorded_cuda {

namespace {

struct Record {
  std::mutex mutex;
  std::set<int> contexts;
  std::vector<int> priorities;
  std::vector<unsigned long long> graph_flags;
};
Record& record() {
  static Record& instance = *new Record;  // never destroyed: streams of threads end late
  return instance;
}

thread_local int device = 0;

/// A call that needs a context.
cudaError_t on_device() {
  const std::lock_guard lock(record().mutex);
  record().contexts.insert(device);
  return cudaSuccess;
}

/// A handle that nobody looks into.
template <class Handle>
cudaError_t make(Handle* handle) {
  *handle = reinterpret_cast<Handle>(std::malloc(1));
  return on_device();
}
cudaError_t destroy(void* handle) {
  std::free(handle);
  return on_device();
}

}  // namespace

std::set<int> contexts() {
  const std::lock_guard lock(record().mutex);
  return record().contexts;
}
std::vector<int> priorities() {
  const std::lock_guard lock(record().mutex);
  return record().priorities;
}
std::vector<unsigned long long> graph_flags() {
  const std::lock_guard lock(record().mutex);
  return record().graph_flags;
}
void forget() {
  const std::lock_guard lock(record().mutex);
  record().contexts.clear();
  record().priorities.clear();
  record().graph_flags.clear();
}

}  // namespace lockstep::recorded_cuda

using namespace lockstep::recorded_cuda;

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kDevices;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* current) {
  *current = device;
  return cudaSuccess;
}
/// From CUDA 12 on this makes the context.
cudaError_t cudaSetDevice(int chosen) {
  device = chosen;
  return on_device();
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
const char* cudaGetErrorName(cudaError_t) { return "cudaError"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
  *available = *total = 0;
  return on_device();
}
cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  *data = std::malloc(bytes);
  return on_device();
}
cudaError_t cudaFree(void* data) { return destroy(data); }
cudaError_t cudaMallocHost(void** data, std::size_t bytes) { return cudaMalloc(data, bytes); }
cudaError_t cudaFreeHost(void* data) { return destroy(data); }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void*) {
  *attributes = {};
  attributes->type = cudaMemoryTypeDevice;
  return on_device();
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  return on_device();
}
cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t) {
  std::memset(data, value, bytes);
  return on_device();
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = kLeastPriority;
  *greatest = kGreatestPriority;
  return on_device();
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int priority) {
  {
    const std::lock_guard lock(record().mutex);
    record().priorities.push_back(priority);
  }
  return make(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return destroy(stream); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return on_device(); }
cudaError_t cudaStreamQuery(cudaStream_t) { return on_device(); }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned int) { return on_device(); }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return on_device();
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) { return make(event); }
cudaError_t cudaEventCreate(cudaEvent_t* event) { return make(event); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = std::chrono::duration<float, std::milli>(lockstep::recorded_cuda::kBetweenEvents).count();
  return on_device();
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return destroy(event); }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return on_device(); }
cudaError_t cudaEventQuery(cudaEvent_t) { return on_device(); }

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) { return on_device(); }
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) { return make(graph); }
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return destroy(graph); }
cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t*, std::size_t* count) {
  *count = 0;
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t, cudaGraphNodeType* type) {
  *type = cudaGraphNodeTypeEmpty;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t, unsigned long long flags) {
  {
    const std::lock_guard lock(record().mutex);
    record().graph_flags.push_back(flags);
  }
  return make(executable);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) { return destroy(executable); }
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { return on_device(); }
