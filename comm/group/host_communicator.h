// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "comm/group/arguments.h"

namespace lockstep::comm {

/// The Communicator over a channel between CPUs, whose collectives have finished when they return: checks arguments
/// where the mistake is made, and puts the calls on streams. What is enqueued keeps the channel and the buffers alive.
template <class Channel>
class ChannelCommunicator final : public Communicator {
 public:
  explicit ChannelCommunicator(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}

  int rank() const override { return channel_->rank(); }
  int size() const override { return channel_->size(); }
  std::string description() const override { return channel_->description(); }

  Storage allocate(std::size_t bytes) override { return channel_->allocate(bytes); }

  void all_reduce(const Tensor& buffer, ReduceOp op, float premultiply, const Stream& stream) override {
    check_host("all_reduce", buffer);
    check_reduction("all_reduce", buffer.dtype(), op, premultiply);
    stream.enqueue([channel = channel_, buffer, op, premultiply] { channel->all_reduce(buffer, op, premultiply); });
  }

  void broadcast(const Tensor& buffer, int root, const Stream& stream) override {
    check_host("broadcast", buffer);
    check_root("broadcast", root, size());
    stream.enqueue([channel = channel_, buffer, root] { channel->broadcast(buffer, root); });
  }

  void all_gather(const Tensor& in, const Tensor& out, const Stream& stream) override {
    check_host("all_gather", in);
    check_host("all_gather", out);
    check_slices("all_gather", out, in, size());
    stream.enqueue([channel = channel_, in, out] { channel->all_gather(in, out); });
  }

  void reduce_scatter(const Tensor& in, const Tensor& out, ReduceOp op, const Stream& stream) override {
    check_host("reduce_scatter", in);
    check_host("reduce_scatter", out);
    check_slices("reduce_scatter", in, out, size());
    check_reduction("reduce_scatter", in.dtype(), op, 1.0f);
    stream.enqueue([channel = channel_, in, out, op] { channel->reduce_scatter(in, out, op); });
  }

  void barrier(const Stream& stream) override {
    stream.enqueue([channel = channel_] { channel->barrier(); });
  }

  std::shared_ptr<Communicator> duplicate(const std::string& name) override {
    return std::make_shared<ChannelCommunicator>(channel_->duplicate(name));
  }

  std::optional<std::chrono::nanoseconds> waited() const override { return channel_->waited(); }

  void inspect(const Operation& mine, std::int64_t number, std::chrono::milliseconds waited) override {
    channel_->inspect(mine, number, waited);
  }

 private:
  std::shared_ptr<Channel> channel_;
};

}  // namespace lockstep::comm
