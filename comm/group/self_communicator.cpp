// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "comm/group/arguments.h"
#include "runtime/kernels/cpu/rank_reduce.h"

namespace lockstep::comm {

namespace {

class SelfCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string description() const override { return "self"; }

  Storage allocate(std::size_t bytes) override {
    Storage storage = Storage::allocate(bytes, kCpu);
    std::memset(storage.data(), 0, bytes);
    return storage;
  }

  void all_reduce(const Tensor& buffer, ReduceOp op, float premultiply, const Stream& stream) override {
    check_host("all_reduce", buffer);
    check_reduction("all_reduce", buffer.dtype(), op, premultiply);
    if (premultiply == 1.0f) return;
    stream.enqueue([buffer, premultiply] {
      const void* const source = buffer.data();
      void* const output = buffer.data();
      kernels::cpu::rank_reduce(kernels::cpu::RankReduction::kSum, buffer.dtype(), buffer.numel(), {&source, 1},
                                {&premultiply, 1}, 1.0f, {&output, 1});
    });
  }

  void broadcast(const Tensor& buffer, int root, const Stream&) override {
    check_host("broadcast", buffer);
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

  std::shared_ptr<Communicator> duplicate(const std::string&) override { return make_self_communicator(); }

 private:
  static void copy(const char* name, const Tensor& in, const Tensor& out, const Stream& stream) {
    check_host(name, in);
    check_host(name, out);
    if (!in.aliases(out)) stream.enqueue([in, out] { std::memcpy(out.data(), in.data(), in.bytes()); });
  }
};

}  // namespace

std::shared_ptr<Communicator> make_self_communicator() { return std::make_shared<SelfCommunicator>(); }

}  // namespace lockstep::comm
