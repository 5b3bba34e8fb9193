// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/group/mpi/mpi_comm.h"
#include "comm/group/reduction.h"

namespace lockstep::comm::exchange {

// Collectives between the ranks of an MPI group that have met for `operation`. Element order and arithmetic are those
// of one kernels::rank_reduce over all ranks' data, so the bits are the same as in shared memory.

/// data = reduction of the ranks' data, in place; the data travels in its own dtype.
void all_reduce(MpiComm& group, const Operation& operation, const Reduction& reduction, std::byte* data,
                std::int64_t count);
/// out = this rank's `count` elements of the reduction of the ranks' in, size() * count elements each.
void reduce_scatter(MpiComm& group, const Operation& operation, const Reduction& reduction, const std::byte* in,
                    std::byte* out, std::int64_t count);
/// out = the ranks' in, `bytes` each, one after the other; `in` may lie in its place in out.
void all_gather(MpiComm& group, const Operation& operation, const std::byte* in, std::byte* out, std::int64_t bytes);
void broadcast(MpiComm& group, const Operation& operation, std::byte* data, std::int64_t bytes);

}  // namespace lockstep::comm::exchange
