// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/group/communicator.h"

namespace lockstep::comm {

enum class OperationKind : std::uint8_t {
  kAllReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kBarrier,
  kAllocate,
  kNewChannel,  ///< duplicate and split
  kLeave,
  kReplay,  ///< a captured step, launched again
  kJoin,
  kConnect,  ///< the ranks of a channel connect to each other
};

/// The channel that a group begins with.
inline constexpr const char* kFirstChannel = "world";

/// The collective that a rank is about to do. The ranks exchange these whenever they meet, so that ranks which call
/// different collectives learn of it instead of mixing their data. Plain bytes, for shared memory and messages.
struct Operation {
  OperationKind kind = OperationKind::kBarrier;
  ReduceOp reduce = ReduceOp::kSum;
  DType dtype = DType::kUInt8;
  std::int32_t root = 0;
  std::int64_t count = 0;  ///< elements of the input; bytes for kAllocate; the step for kReplay
  // Each rank's own, not compared:
  float premultiply = 1.0f;
  std::int64_t window = -1;  ///< the shared window that holds the buffer, -1 for none
  std::int64_t offset = 0;   ///< of the buffer in the window, in bytes
};

/// Whether two ranks mean the same collective.
bool agree(const Operation& a, const Operation& b);
/// Whether all ranks do.
bool agree(std::span<const Operation> operations);
/// "all_reduce(sum) of 1024 float16", for messages.
std::string describe(const Operation& operation);
/// "all_reduce(sum) of 1024 float16 in channel "gradients"", for messages.
std::string describe(const Operation& operation, const std::string& channel);

}  // namespace lockstep::comm
