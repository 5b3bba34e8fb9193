// SPDX-License-Identifier: Apache-2.0
#include "comm/group/nccl_communicator.h"

#include <cstdlib>

#include "comm/group/arguments.h"
#include "comm/group/device_waits.h"
#include "comm/group/nccl/shared_devices.h"
#include "comm/group/nccl/watched_channel.h"
#include "comm/group/reduction_plan.h"
#include "comm/group/versions.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::comm {

namespace {

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return ncclFloat32;
    case DType::kFloat16:
      return ncclFloat16;
    case DType::kBFloat16:
      return ncclBfloat16;
    case DType::kFloat64:
      return ncclFloat64;
    case DType::kInt64:
      return ncclInt64;
    case DType::kInt32:
      return ncclInt32;
    case DType::kUInt8:
    case DType::kBool:
      return ncclUint8;
  }
  throw ShapeError("NCCL has no dtype " + std::string(name_of(dtype)));
}

std::size_t count_of(const Tensor& tensor) { return static_cast<std::size_t>(tensor.numel()); }

/// ncclMemFree, once nothing uses the memory: no stream's order holds for it. At the end of the process CUDA may be
/// gone.
void give_back(void* data, Device device) noexcept {
  gpu::settle_thread(device);
  int previous = 0;
  cudaGetDevice(&previous);
  cudaSetDevice(device.index);
  cudaDeviceSynchronize();
  ncclMemFree(data);
  cudaSetDevice(previous);
}

/// tensor *= factor, rounded once, on the stream.
void scale(const Tensor& tensor, double factor, const Stream& stream) {
  if (factor == 1.0) return;
  stream.enqueue([&] { kernels::scale(tensor, factor, nullptr, tensor); });
}

ncclRedOp_t nccl_operator(ReductionPlan::Operator op) {
  switch (op) {
    case ReductionPlan::Operator::kSum:
      return ncclSum;
    case ReductionPlan::Operator::kMax:
      return ncclMax;
    case ReductionPlan::Operator::kAverage:
      return ncclAvg;
  }
  throw UsageError("NCCL has no such reduction");
}

class NcclCommunicator final : public Communicator, public LaunchWatch, public PlannedReductions {
 public:
  NcclCommunicator(std::shared_ptr<WatchedChannel> channel, Device device)
      : channel_(std::move(channel)),
        host_(*channel_->host()),
        device_(device),
        nothing_(Tensor::zeros({1}, DType::kInt32, device)) {}

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  std::string description() const override { return "nccl over " + host_.description(); }
  ReductionPlan plan(DType dtype, ReduceOp op, float premultiply) const override {
    return plan_reduction(dtype, op, premultiply, size());
  }

  Storage allocate(std::size_t bytes) override {
    const gpu::DeviceGuard guard(device_);
    const Stream stream = gpu::current_stream(device_);
    void* data = nullptr;
    if (bytes == 0 || ncclMemAlloc(&data, bytes) != ncclSuccess) {
      cudaGetLastError();  // dealt with; it must not surface in a later call
      Storage storage = Storage::allocate(bytes, device_);
      gpu::zero(storage.data(), bytes, stream);
      return storage;
    }
    Storage storage = Storage::counted(data, bytes, device_, [data, device = device_] { give_back(data, device); });
    gpu::zero(data, bytes, stream);
    stream.synchronize();
    return storage;
  }

  void all_reduce(const Tensor& buffer, ReduceOp op, float premultiply, const Stream& stream) override {
    check_device("all_reduce", buffer, device_);
    check_reduction("all_reduce", buffer.dtype(), op, premultiply);
    if (buffer.device() == kCpu) return host_.all_reduce(buffer, op, premultiply, stream);
    if (buffer.numel() == 0) return;
    const Operation operation{
        .kind = OperationKind::kAllReduce, .reduce = op, .dtype = buffer.dtype(), .count = buffer.numel()};
    const ReductionPlan how = plan(buffer.dtype(), op, premultiply);
    scale(buffer, how.factor, stream);
    channel_->enqueue(operation, stream, [&](ncclComm_t comm, cudaStream_t native) {
      return ncclAllReduce(buffer.data(), buffer.data(), count_of(buffer), nccl_type(buffer.dtype()),
                           nccl_operator(how.op), comm, native);
    });
  }

  void broadcast(const Tensor& buffer, int root, const Stream& stream) override {
    check_device("broadcast", buffer, device_);
    check_root("broadcast", root, size());
    if (buffer.device() == kCpu) return host_.broadcast(buffer, root, stream);
    if (buffer.numel() == 0) return;
    const Operation operation{
        .kind = OperationKind::kBroadcast, .dtype = buffer.dtype(), .root = root, .count = buffer.numel()};
    channel_->enqueue(operation, stream, [&](ncclComm_t comm, cudaStream_t native) {
      return ncclBroadcast(buffer.data(), buffer.data(), count_of(buffer), nccl_type(buffer.dtype()), root, comm,
                           native);
    });
  }

  void all_gather(const Tensor& in, const Tensor& out, const Stream& stream) override {
    check_device("all_gather", in, out, device_);
    check_slices("all_gather", out, in, size());
    if (in.device() == kCpu) return host_.all_gather(in, out, stream);
    if (in.numel() == 0) return;
    const Operation operation{.kind = OperationKind::kAllGather, .dtype = in.dtype(), .count = in.numel()};
    channel_->enqueue(operation, stream, [&](ncclComm_t comm, cudaStream_t native) {
      return ncclAllGather(in.data(), out.data(), count_of(in), nccl_type(in.dtype()), comm, native);
    });
  }

  void reduce_scatter(const Tensor& in, const Tensor& out, ReduceOp op, const Stream& stream) override {
    check_device("reduce_scatter", in, out, device_);
    check_slices("reduce_scatter", in, out, size());
    check_reduction("reduce_scatter", in.dtype(), op, 1.0f);
    if (in.device() == kCpu) return host_.reduce_scatter(in, out, op, stream);
    if (in.numel() == 0) return;
    const Operation operation{
        .kind = OperationKind::kReduceScatter, .reduce = op, .dtype = in.dtype(), .count = in.numel()};
    const ReductionPlan how = plan(in.dtype(), op, 1.0f);
    scale(in, how.factor, stream);
    channel_->enqueue(operation, stream, [&](ncclComm_t comm, cudaStream_t native) {
      return ncclReduceScatter(in.data(), out.data(), count_of(out), nccl_type(in.dtype()), nccl_operator(how.op), comm,
                               native);
    });
  }

  void barrier(const Stream& stream) override {
    if (stream.device() == kCpu) return host_.barrier(stream);
    channel_->enqueue({.kind = OperationKind::kBarrier}, stream, [&](ncclComm_t comm, cudaStream_t native) {
      return ncclAllReduce(nothing_.data(), nothing_.data(), 1, ncclInt32, ncclMax, comm, native);
    });
  }

  std::shared_ptr<Communicator> duplicate(const std::string& name) override {
    return std::make_shared<NcclCommunicator>(channel_->duplicate(name), device_);
  }

  std::shared_ptr<Communicator> split(int color, int key, const std::string& name) override {
    std::shared_ptr<WatchedChannel> part = channel_->split(color, key, name);
    return part ? std::make_shared<NcclCommunicator>(std::move(part), device_) : nullptr;
  }

  void watch(const Stream& stream, std::uint64_t step, const std::function<void()>& launch) override {
    if (stream.device() == kCpu) return launch();
    channel_->watch(stream, step, launch);
  }

 private:
  std::shared_ptr<WatchedChannel> channel_;
  Communicator& host_;
  Device device_;
  Tensor nothing_;  // what the ranks reduce at a barrier
};

}  // namespace

std::shared_ptr<Communicator> make_nccl_communicator(std::shared_ptr<Communicator> host, Device device,
                                                     const CommunicatorOptions& options) {
  // Channels are communicators of their own, whose kernels may wait for each other's place on the device: in the order
  // of the host's calls, which is the same on all ranks, none waits for ever. NCCL reads it when it starts, from 2.26
  // on.
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
  gpu::describe(device);  // throws where there is no such device
  tell_ranks_of_a_device_apart(*host, device);
  const WatchedChannel::Group group{DeviceWatchdog::of_process(), device, options.timeout};
  return std::make_shared<NcclCommunicator>(std::make_shared<WatchedChannel>(group, std::move(host), "nccl"), device);
}

std::string nccl_version() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return {};
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace lockstep::comm
