// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/tensor/storage.h"
#include "runtime/tensor/stream.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::comm {

enum class ReduceOp { kSum, kMax, kAverage };

struct CommunicatorOptions {
  /// A collective that has not completed after this long throws PeerError naming the ranks that did not arrive.
  std::chrono::milliseconds timeout{std::chrono::seconds(60)};
  /// Let the ranks of a node reduce in place in shared memory; otherwise everything goes through MPI or TCP.
  bool shared_memory = true;
  /// Besides the CPU, this rank's tensors may lie on this device: its GPU, which the caller chooses by
  /// launch_environment().local_rank.
  Device device = kCpu;
  /// The name of what the ranks do together; ranks over TCP pass by those that do something else.
  std::string job = {};
  /// The job's hash, which tells it from others of that name. Ranks over TCP pass by ranks that have another hash,
  /// unless the environment names their run.
  std::string job_hash = {};
};

/// Collectives between the ranks of a group.
///
/// Every rank of the group calls the same collectives with the same element counts and dtypes in the same order per
/// *channel* (below). Each call is enqueued on `stream` and returns; the buffers belong to the call until the stream
/// has passed it. With Stream::calling_thread() the call has finished when it returns.
///
/// Reductions accumulate in float32 (float64 for float64, exact for integers) in the order of the ranks and round once,
/// so a result is the same on every rank and in every run, on one node with shared memory or without; 16-bit sums
/// cannot overflow on the way. kAverage multiplies the sum by 1 / the group's size before rounding. Where ranks share
/// memory on several nodes, each node adds up its ranks first, and the nodes' sums are added in the same precision: the
/// result may differ from that of one node by rounding in that precision.
///
/// Errors: PeerError for ranks that are late, gone or disagree (thrown by the call, or by whatever synchronises the
/// stream); ShapeError for buffers that do not fit.
///
/// On a GPU the buffers may lie on the CPU too, each with a stream of its device. What NCCL does differently there:
/// sums of 16-bit values are rounded on their way from rank to rank, in an order that the topology decides, and a
/// maximum may lose a NaN. Averages of float64 take no factor. Results are still the same on every rank, and in every
/// run on the same machines. `stream` must be one on which a buffer's memory may be used (runtime/tensor/gpu.h), until
/// it has passed the call.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// "self", "mpi, shared memory", "mpi", "tcp, shared memory", "tcp", "nccl over mpi, shared memory"
  virtual std::string description() const = 0;

  /// Zeroed memory in which all_reduce works in place, without a copy: the ranks of a node see each other's. A
  /// collective: every rank asks for the same number of bytes. Falls back to private memory, and logs one warning on
  /// rank 0, where there is too little memory to share. On a GPU: memory of the device, which NCCL can register.
  virtual Storage allocate(std::size_t bytes) = 0;

  /// buffer = premultiplied op over ranks, in place. Floating dtypes, int32 and int64. Each rank's contribution is
  /// multiplied by its own `premultiply` in float32 first (1 for integers and kMax).
  virtual void all_reduce(const Tensor& buffer, ReduceOp op, float premultiply, const Stream& stream) = 0;
  /// buffer of `root` to all; any dtype.
  virtual void broadcast(const Tensor& buffer, int root, const Stream& stream) = 0;
  /// out = the ranks' `in` one after the other: out.numel() == size() * in.numel(); any dtype.
  virtual void all_gather(const Tensor& in, const Tensor& out, const Stream& stream) = 0;
  /// out = this rank's slice of the reduced `in`: in.numel() == size() * out.numel(). `in` may be overwritten.
  virtual void reduce_scatter(const Tensor& in, const Tensor& out, ReduceOp op, const Stream& stream) = 0;
  virtual void barrier(const Stream& stream) = 0;

  /// Another channel of the same ranks. Collectives on two channels may run at the same time, from two threads.
  /// A collective itself. Memory from allocate() may be used on any channel.
  virtual std::shared_ptr<Communicator> duplicate(const std::string& name) = 0;

  /// A communicator of the ranks that give the same `color`, ranked by `key`, then by their rank here, with an order of
  /// its own; null for a rank whose color is negative. A collective itself. Memory from allocate() may be used on both,
  /// without a copy where all of a communicator's ranks in the node have it from one call.
  virtual std::shared_ptr<Communicator> split(int color, int key, const std::string& name = "split") = 0;

  /// Makes `stream` wait for `event`, behind which lie collectives on another stream. What that stream's thread waits
  /// for other ranks meanwhile, the calling thread waits too: waited().
  virtual void wait_for(const Event& event, const Stream& stream);

  /// How long the calling thread has waited for other ranks so far, on all channels: in collectives that it ran and in
  /// wait_for(). Where other threads waited while it computed, it lost nothing. Nothing where collectives run on a
  /// device, which waits unseen.
  virtual std::optional<std::chrono::nanoseconds> waited() const { return std::nullopt; }

  /// Text of every rank, in rank order; for configuration and errors, not for tensors.
  std::vector<std::string> all_gather_text(const std::string& text);
  /// Text of `root` on every rank.
  std::string broadcast_text(const std::string& text, int root);
};

/// A group of one: collectives are scaling or nothing. For tensors on the CPU and on `device`.
std::shared_ptr<Communicator> make_self_communicator(Device device = kCpu);

}  // namespace lockstep::comm
