// SPDX-License-Identifier: Apache-2.0
#include "comm/group/operation.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::comm {

namespace {

std::string name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kAverage:
      return "average";
  }
  return "unknown";
}

}  // namespace

bool agree(const Operation& a, const Operation& b) {
  return a.kind == b.kind && a.reduce == b.reduce && a.dtype == b.dtype && a.root == b.root && a.count == b.count;
}

bool agree(std::span<const Operation> operations) {
  return std::ranges::all_of(operations, [&](const Operation& each) { return agree(each, operations.front()); });
}

std::string describe(const Operation& operation) {
  const std::string elements = fmt::format(" of {} {}", operation.count, lockstep::name_of(operation.dtype));
  switch (operation.kind) {
    case OperationKind::kAllReduce:
      return "all_reduce(" + name_of(operation.reduce) + ")" + elements;
    case OperationKind::kBroadcast:
      return fmt::format("broadcast{} from rank {}", elements, operation.root);
    case OperationKind::kAllGather:
      return "all_gather" + elements;
    case OperationKind::kReduceScatter:
      return "reduce_scatter(" + name_of(operation.reduce) + ")" + elements;
    case OperationKind::kBarrier:
      return "barrier";
    case OperationKind::kAllocate:
      return fmt::format("allocate of {} bytes", operation.count);
    case OperationKind::kNewChannel:
      return "making of a channel";
    case OperationKind::kLeave:
      return "end of the run";
    case OperationKind::kReplay:
      return fmt::format("captured step {}", operation.count);
    case OperationKind::kJoin:
      return "start of the run";
    case OperationKind::kConnect:
      return "direct connections";
  }
  return "unknown operation";
}

std::string describe(const Operation& operation, const std::string& channel) {
  return describe(operation) + " in channel \"" + channel + "\"";
}

}  // namespace lockstep::comm
