// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "runtime/tensor/storage.h"
#include "runtime/tensor/stream.h"

namespace lockstep::gpu {

// GPUs as the lowest floor sees them. cuda/ implements this; no_cuda/ stands in for it in a build without CUDA, where
// there are no devices and whatever needs one throws EnvironmentError.

/// Devices that this process can use; 0 where the build has no CUDA or no driver answers. Never throws.
int device_count();
/// Why device_count() is 0, in one line; empty where it is not.
std::string why_none();

/// Compute capabilities, 80 is 8.0, from which on GPUs multiply these on tensor cores; before, they have no bfloat16 at
/// all.
inline constexpr int kFloat16TensorCores = 70;
inline constexpr int kBFloat16TensorCores = 80;

struct Description {
  std::string name;
  int compute_capability = 0;  ///< 90 is 9.0
  int multiprocessors = 0;
  std::size_t total_memory = 0;  ///< bytes
};
/// Asks the driver, without a context: takes no memory of the device. Throws EnvironmentError for a device that is not
/// there.
Description describe(Device device);
/// The free bytes of the device. Makes a context on the device, which takes some of them.
std::size_t free_memory(Device device);

/// Makes `device` the one of this process and of the calling thread, before anything else uses it: what names no
/// device, such as allocate_pinned(), uses this one. Without, CUDA would make a context on the first device of the
/// machine, half a gigabyte for each process. Throws EnvironmentError for a device that is not there.
void use_device(Device device);

/// The oldest compute capability for which this build has kernels; 0 where it has none.
int oldest_compute_capability();

/// "13.0" of what the build runs with; empty where there is none.
std::string runtime_version();
std::string driver_version();

/// Memory from the device's caching allocator, which gives a block that was freed to the next allocation of the same
/// stream: work in the stream's order needs no more. Where another stream uses a block, the owner has to keep it until
/// that use is over. Throws MemoryError naming the bytes asked for, those free, and what holds the most.
Storage allocate(std::size_t bytes, Device device);
/// Page-locked host memory, from which and to which a device copies while the host goes on. Taking it, and giving it
/// back, waits for the device. Throws MemoryError naming the bytes.
Storage allocate_pinned(std::size_t bytes);
/// Whether host memory is page-locked.
bool is_pinned(const void* data);
/// Bytes that the allocator has taken from the device, cached blocks included.
std::size_t reserved_memory(Device device);

/// Where several streams have work, the device begins with that of the greatest priority.
enum class StreamPriority {
  kLeast,     ///< compute
  kGreatest,  ///< what compute waits for: reductions, uploads
};

/// The stream of the calling thread's work for the device: the ScopedStream's, else the thread's own of least priority.
Stream current_stream(Device device);
/// A new stream.
Stream make_stream(Device device, const std::string& name, StreamPriority priority);

/// While it lives, the calling thread's work for the stream's device runs on it.
class ScopedStream {
 public:
  explicit ScopedStream(const Stream& stream);
  ~ScopedStream();
  ScopedStream(const ScopedStream&) = delete;
  ScopedStream& operator=(const ScopedStream&) = delete;

 private:
  Stream previous_;
};

/// Appends a copy of `bytes` to the stream. Either end may be host memory. With pinned memory the call does not wait;
/// other host memory has been read or written when it returns or throws, and may end then: to write it the call waits
/// for the stream, once, and throws what set_failure() was given for the device.
void copy(void* to, const void* from, std::size_t bytes, const Stream& stream);
/// Appends writing zeros.
void zero(void* to, std::size_t bytes, const Stream& stream);

/// A point in a GPU's stream's work that remembers when the device came to it. Copies share the point.
class Moment {
 public:
  /// Appends it.
  explicit Moment(const Stream& stream);
  /// How long after `earlier`, a point of the same device. Both have been reached: whoever asks has waited for them. To
  /// half a microsecond on CUDA.
  std::chrono::nanoseconds since(const Moment& earlier) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// From now on a wait for one of the device's streams or events throws this exception, without waiting for what may
/// hang there: the work is aborted and its results are invalid. Null ends that. Thread-safe.
void set_failure(Device device, std::exception_ptr failure);

/// Work of a device that is recorded once and launched as a whole any number of times: a CUDA graph.
class Graph {
 public:
  explicit Graph(Device device);
  /// Waits for what was launched.
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Records what `work` appends to the calling thread's current stream of the device, and to streams that it draws in
  /// by events, instead of running it. Everything that the work refers to must stay where it is as long as the graph
  /// lives; what it allocates on the way comes from memory that belongs to the graph. The same work must have run
  /// before, so that nothing is set up for the first time. Throws what the work throws, and UsageError where it copies
  /// from or to host memory that is not pinned. Once.
  void capture(const std::function<void()>& work);
  /// Appends the recorded work to the calling thread's current stream. Throws what set_failure() was given for the
  /// device, and UsageError where the graph was given up.
  void launch();
  /// How many kernels, copies and fills were recorded; 0 before capture().
  std::size_t nodes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Destroys what all graphs of the device have recorded; work of theirs that is on its way keeps it until it ends. A
/// communicator that is aborted is not reclaimed as long as a graph refers to it. Thread-safe.
void give_up_graphs(Device device);

/// Gives cached memory that nothing uses back to the device; waits for it.
void release_cached(Device device);

/// How often this process has waited for a device so far: what a step must not do.
std::uint64_t host_waits();

}  // namespace lockstep::gpu
