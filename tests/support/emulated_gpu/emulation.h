// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "runtime/tensor/gpu.h"
#include "runtime/tensor/stream.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::gpu::emulation {

// A GPU made of host memory and threads. It computes what a GPU would, as late as a GPU would: a stream's work runs on
// a thread of its own, memory is poisoned when it is given and when it is given back in the stream's order, and a graph
// repeats what was recorded and nothing else. So whatever the host does too early, forgets to order, or leaves lying
// shows as it would on a GPU.
//
// LOCKSTEP_EMULATED_GPUS says how many there are. A process gets a context on one of them, as where GPUs are in
// exclusive mode: a rank that touches one beside its own fails.

/// Appends work to the device's stream, or to the graph that the calling thread records. What it refers to on the host
/// must be its own; device memory it may only point to.
void append(const Stream& stream, std::function<void()> work);
/// The same for what memory costs here and nothing on a GPU: no node of a graph.
void append_memory_work(const Stream& stream, std::function<void()> work);

/// A tensor of the device as one of the CPU, for work that append() was given; it does not keep the memory.
Tensor on_host(const Tensor& tensor);

/// The process's: that of use_device(), or the first one.
Device device();
/// Makes the process's context on the device. Throws EnvironmentError where it has one on another device that
/// use_device() has not left.
void touch(Device device);
StreamPriority priority_of(const Stream& stream);
/// Whether the calling thread records a graph.
bool recording();
/// Between set_recording_aside(true) and (false) the calling thread appends to streams though it records a graph.
void set_recording_aside(bool aside);
/// Called when the graph that the calling thread records is gone.
void when_graph_ends(std::function<void()> release);
/// Whether the address lies in memory of a device or in pinned memory.
bool is_known(const void* data);

}  // namespace lockstep::gpu::emulation
