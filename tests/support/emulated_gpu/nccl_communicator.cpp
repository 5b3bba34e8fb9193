// SPDX-License-Identifier: Apache-2.0
#include "comm/group/nccl_communicator.h"

#include "comm/group/arguments.h"
#include "comm/group/reduction_plan.h"
#include "comm/group/versions.h"
#include "runtime/kernels/assign.h"
#include "runtime/tensor/gpu.h"
#include "tests/support/emulated_gpu/emulation.h"

namespace lockstep::comm {

namespace {

using gpu::emulation::on_host;

/// Collectives of the host's communicator, each run when its stream comes to it, on a channel that nobody else uses.
class EmulatedNccl final : public Communicator, public PlannedReductions {
 public:
  EmulatedNccl(std::shared_ptr<Communicator> host, Device device)
      : host_(std::move(host)), channel_(host_->duplicate("device")), device_(device) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  std::string description() const override { return "emulated nccl over " + host_->description(); }
  ReductionPlan plan(DType dtype, ReduceOp op, float premultiply) const override {
    return plan_reduction(dtype, op, premultiply, size());
  }

  Storage allocate(std::size_t bytes) override {
    Storage storage = Storage::allocate(bytes, device_);
    gpu::zero(storage.data(), bytes, gpu::current_stream(device_));
    return storage;
  }

  void all_reduce(const Tensor& buffer, ReduceOp op, float premultiply, const Stream& stream) override {
    check_device("all_reduce", buffer, device_);
    if (buffer.device() == kCpu) return host_->all_reduce(buffer, op, premultiply, stream);
    const ReductionPlan how = plan(buffer.dtype(), op, premultiply);
    scale(buffer, how.factor, stream);
    run(stream, [buffer = on_host(buffer), op = operator_of(how)](Communicator& channel, const Stream& here) {
      channel.all_reduce(buffer, op, 1.0f, here);
    });
  }
  void broadcast(const Tensor& buffer, int root, const Stream& stream) override {
    check_device("broadcast", buffer, device_);
    if (buffer.device() == kCpu) return host_->broadcast(buffer, root, stream);
    run(stream, [=, buffer = on_host(buffer)](Communicator& channel, const Stream& here) {
      channel.broadcast(buffer, root, here);
    });
  }
  void all_gather(const Tensor& in, const Tensor& out, const Stream& stream) override {
    check_device("all_gather", in, out, device_);
    if (in.device() == kCpu) return host_->all_gather(in, out, stream);
    run(stream, [in = on_host(in), out = on_host(out)](Communicator& channel, const Stream& here) {
      channel.all_gather(in, out, here);
    });
  }
  void reduce_scatter(const Tensor& in, const Tensor& out, ReduceOp op, const Stream& stream) override {
    check_device("reduce_scatter", in, out, device_);
    if (in.device() == kCpu) return host_->reduce_scatter(in, out, op, stream);
    const ReductionPlan how = plan(in.dtype(), op, 1.0f);
    scale(in, how.factor, stream);
    run(stream, [in = on_host(in), out = on_host(out), op = operator_of(how)](
                    Communicator& channel, const Stream& here) { channel.reduce_scatter(in, out, op, here); });
  }
  void barrier(const Stream& stream) override {
    if (stream.device() == kCpu) return host_->barrier(stream);
    run(stream, [](Communicator& channel, const Stream& here) { channel.barrier(here); });
  }
  std::shared_ptr<Communicator> duplicate(const std::string& name) override {
    return std::make_shared<EmulatedNccl>(host_->duplicate(name), device_);
  }
  std::shared_ptr<Communicator> split(int color, int key, const std::string& name) override {
    std::shared_ptr<Communicator> part = host_->split(color, key, name);
    return part ? std::make_shared<EmulatedNccl>(std::move(part), device_) : nullptr;
  }

 private:
  static ReduceOp operator_of(const ReductionPlan& plan) {
    return plan.op == ReductionPlan::Operator::kMax       ? ReduceOp::kMax
           : plan.op == ReductionPlan::Operator::kAverage ? ReduceOp::kAverage
                                                          : ReduceOp::kSum;
  }
  /// A pass over the tensor, as of NCCL's communicator.
  static void scale(const Tensor& tensor, double factor, const Stream& stream) {
    if (factor == 1.0) return;
    stream.enqueue([&] { kernels::scale(tensor, factor, nullptr, tensor); });
  }
  template <class Call>
  void run(const Stream& stream, Call call) {
    gpu::emulation::append(stream, [channel = channel_, device = device_, call = std::move(call)] {
      try {
        call(*channel, Stream::calling_thread());
      } catch (...) {
        gpu::set_failure(device, std::current_exception());
        throw;
      }
    });
  }

  std::shared_ptr<Communicator> host_;
  std::shared_ptr<Communicator> channel_;
  Device device_;
};

}  // namespace

std::shared_ptr<Communicator> make_nccl_communicator(std::shared_ptr<Communicator> host, Device device,
                                                     const CommunicatorOptions&) {
  return std::make_shared<EmulatedNccl>(std::move(host), device);
}

std::string nccl_version() { return "emulated"; }

}  // namespace lockstep::comm
