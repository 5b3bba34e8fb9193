// SPDX-License-Identifier: Apache-2.0
#include "comm/group/host_communicator.h"

#include <utility>

#include "comm/group/arguments.h"
#include "comm/group/device_waits.h"
#include "comm/group/shared_memory/shared_memory_transport.h"
#include "runtime/tensor/trace_range.h"

namespace lockstep::comm {

namespace {

std::byte* bytes_of(const Tensor& tensor) { return static_cast<std::byte*>(tensor.data()); }
std::int64_t length_of(const Tensor& tensor) { return static_cast<std::int64_t>(tensor.bytes()); }

/// Checks arguments where the mistake is made, and puts the calls on streams. What is enqueued keeps the transport and
/// the buffers alive.
class HostCommunicator final : public Communicator, public WaitInspection {
 public:
  HostCommunicator(std::shared_ptr<Transport> transport, std::shared_ptr<Neighbours> neighbours)
      : transport_(std::move(transport)), neighbours_(std::move(neighbours)) {}

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  std::string description() const override { return transport_->description(); }

  Storage allocate(std::size_t bytes) override { return transport_->allocate(bytes); }

  void all_reduce(const Tensor& buffer, ReduceOp op, float premultiply, const Stream& stream) override {
    check_host("all_reduce", buffer);
    check_reduction("all_reduce", buffer.dtype(), op, premultiply);
    const Operation operation{.kind = OperationKind::kAllReduce,
                              .reduce = op,
                              .dtype = buffer.dtype(),
                              .count = buffer.numel(),
                              .premultiply = premultiply};
    stream.enqueue([transport = transport_, operation, buffer] {
      const TraceRange range("all_reduce", RangeKind::kCommunication);
      transport->all_reduce(operation, {}, bytes_of(buffer), buffer.numel());
    });
  }

  void broadcast(const Tensor& buffer, int root, const Stream& stream) override {
    check_host("broadcast", buffer);
    check_root("broadcast", root, size());
    const Operation operation{
        .kind = OperationKind::kBroadcast, .dtype = buffer.dtype(), .root = root, .count = buffer.numel()};
    stream.enqueue([transport = transport_, operation, buffer] {
      const TraceRange range("broadcast", RangeKind::kCommunication);
      transport->broadcast(operation, bytes_of(buffer), length_of(buffer));
    });
  }

  void all_gather(const Tensor& in, const Tensor& out, const Stream& stream) override {
    check_host("all_gather", in);
    check_host("all_gather", out);
    check_slices("all_gather", out, in, size());
    const Operation operation{.kind = OperationKind::kAllGather, .dtype = in.dtype(), .count = in.numel()};
    stream.enqueue([transport = transport_, operation, in, out] {
      const TraceRange range("all_gather", RangeKind::kCommunication);
      transport->all_gather(operation, bytes_of(in), bytes_of(out), length_of(in));
    });
  }

  void reduce_scatter(const Tensor& in, const Tensor& out, ReduceOp op, const Stream& stream) override {
    check_host("reduce_scatter", in);
    check_host("reduce_scatter", out);
    check_slices("reduce_scatter", in, out, size());
    check_reduction("reduce_scatter", in.dtype(), op, 1.0f);
    const Operation operation{
        .kind = OperationKind::kReduceScatter, .reduce = op, .dtype = in.dtype(), .count = in.numel()};
    stream.enqueue([transport = transport_, operation, in, out] {
      const TraceRange range("reduce_scatter", RangeKind::kCommunication);
      transport->reduce_scatter(operation, bytes_of(in), bytes_of(out), out.numel());
    });
  }

  void barrier(const Stream& stream) override {
    stream.enqueue([transport = transport_] {
      const TraceRange range("barrier", RangeKind::kCommunication);
      transport->meet({.kind = OperationKind::kBarrier});
    });
  }

  std::shared_ptr<Communicator> split(int color, int key, const std::string& name) override {
    std::shared_ptr<Transport> part = transport_->split(color, key, name);
    return part ? make_host_communicator(std::move(part), neighbours_) : nullptr;
  }

  std::shared_ptr<Communicator> duplicate(const std::string& name) override { return split(0, rank(), name); }

  void wait_for(const Event& event, const Stream& stream) override {
    const WaitClock::Join join(transport_->peers().waits());
    Communicator::wait_for(event, stream);
  }

  std::optional<std::chrono::nanoseconds> waited() const override { return WaitClock::of_this_thread(); }

  void inspect(const Operation& operation, std::int64_t number, std::chrono::milliseconds waited) override {
    transport_->inspect(operation, number, waited);
  }

 private:
  std::shared_ptr<Transport> transport_;
  std::shared_ptr<Neighbours> neighbours_;
};

}  // namespace

std::shared_ptr<Communicator> make_host_communicator(std::shared_ptr<Transport> transport,
                                                     std::shared_ptr<Neighbours> neighbours) {
  std::shared_ptr<Transport> fastest = with_shared_memory(std::move(transport), neighbours);
  return std::make_shared<HostCommunicator>(std::move(fastest), std::move(neighbours));
}

}  // namespace lockstep::comm
