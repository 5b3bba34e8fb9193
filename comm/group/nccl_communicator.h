// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/group/communicator.h"

namespace lockstep::comm {

/// The group of `host` with NCCL between its GPUs; nccl/ implements this, and no_nccl/ stands in for it in a build
/// without CUDA, where it throws EnvironmentError. Tensors on `device` travel through NCCL on the stream given, and the
/// call returns once they are enqueued; tensors on the CPU, text and the search for lost ranks are left to `host`. A
/// collective of the ranks of `host`, whose first channel must have no other user from here on.
///
/// Every channel has an NCCL communicator of its own, on the caller's streams. Kernels of several communicators that
/// wait for other ranks cannot block each other as long as they all fit on the device at once: a channel's occupy at
/// most kMaxBlocksOfNccl multiprocessors (nccl/nccl_comm.cpp), and a run needs three channels. Beyond that, and for
/// streams to which the driver gives one queue, ranks that make the same calls in the same order over all channels are
/// safe with NCCL 2.26 and newer, which launches in that order (NCCL_LAUNCH_ORDER_IMPLICIT, 1 unless set).
///
/// Ranks that share a GPU, for tests: NCCL takes two ranks on one GPU of one host for a mistake, so each of them says
/// that it is a host of its own (NCCL_HOSTID, unless set) and they talk through sockets.
///
/// A thread watches what is on its way. When a rank dies, NCCL fails, or a collective takes longer than the timeout,
/// every channel of every group of the process is aborted, the device's graphs are given up, and the next call and
/// whatever waits for the device's streams throw PeerError, which names the operation, its number in the channel, and
/// the ranks that did not arrive (device_watch/device_watchdog.h). Collectives that a stream captures are not watched;
/// their graph's launch is, through watch(), which names the step.
std::shared_ptr<Communicator> make_nccl_communicator(std::shared_ptr<Communicator> host, Device device,
                                                     const CommunicatorOptions& options);

}  // namespace lockstep::comm
