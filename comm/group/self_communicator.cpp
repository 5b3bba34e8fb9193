// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "comm/group/arguments.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/rank_reduce.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::comm {

namespace {

class SelfCommunicator final : public Communicator {
 public:
  explicit SelfCommunicator(Device device) : device_(device) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string description() const override { return "self"; }
  std::optional<std::chrono::nanoseconds> waited() const override { return std::chrono::nanoseconds(0); }

  Storage allocate(std::size_t bytes) override {
    Storage storage = Storage::allocate(bytes, device_);
    if (device_ == kCpu) {
      std::memset(storage.data(), 0, bytes);
    } else {
      gpu::zero(storage.data(), bytes, gpu::current_stream(device_));
    }
    return storage;
  }

  void all_reduce(const Tensor& buffer, ReduceOp op, float premultiply, const Stream& stream) override {
    check_device("all_reduce", buffer, device_);
    check_reduction("all_reduce", buffer.dtype(), op, premultiply);
    if (premultiply == 1.0f) return;
    if (buffer.device() != kCpu) {
      stream.enqueue([&] { kernels::scale(buffer, premultiply, nullptr, buffer); });
      return;
    }
    stream.enqueue([buffer, premultiply] {
      const void* const source = buffer.data();
      void* const output = buffer.data();
      kernels::rank_reduce(kernels::RankReduction::kSum, buffer.dtype(), buffer.numel(), {&source, 1},
                           {&premultiply, 1}, 1.0f, {&output, 1});
    });
  }

  void broadcast(const Tensor& buffer, int root, const Stream&) override {
    check_device("broadcast", buffer, device_);
    check_root("broadcast", root, 1);
  }

  void all_gather(const Tensor& in, const Tensor& out, const Stream& stream) override {
    check_slices("all_gather", out, in, 1);
    copy("all_gather", in, out, stream);
  }

  void reduce_scatter(const Tensor& in, const Tensor& out, ReduceOp op, const Stream& stream) override {
    check_slices("reduce_scatter", in, out, 1);
    check_reduction("reduce_scatter", in.dtype(), op, 1.0f);
    copy("reduce_scatter", in, out, stream);
  }

  void barrier(const Stream&) override {}
  /// No communication: of a lone rank nobody is waited for.
  void wait_for(const Event& event, const Stream& stream) override { stream.wait(event); }

  std::shared_ptr<Communicator> duplicate(const std::string&) override { return make_self_communicator(device_); }

  std::shared_ptr<Communicator> split(int color, int, const std::string&) override {
    return color < 0 ? nullptr : make_self_communicator(device_);
  }

 private:
  void copy(const char* name, const Tensor& in, const Tensor& out, const Stream& stream) const {
    check_device(name, in, out, device_);
    if (in.aliases(out)) return;
    if (in.device() != kCpu) {
      gpu::copy(out.data(), in.data(), in.bytes(), stream);
    } else {
      stream.enqueue([in, out] { std::memcpy(out.data(), in.data(), in.bytes()); });
    }
  }

  Device device_;
};

}  // namespace

std::shared_ptr<Communicator> make_self_communicator(Device device) {
  return std::make_shared<SelfCommunicator>(device);
}

}  // namespace lockstep::comm
