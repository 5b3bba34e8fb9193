// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <utility>

// CUDA's threads on one thread of the host: the sources of the kernels run as they are, so that what they compute is
// tested where there is no GPU. Blocks come one after the other, and a block's threads take turns: each runs until it
// waits for others. Blocks, the warps of a block and the lanes of a warp come in an order that changes from launch to
// launch, so that a missing barrier shows; shared memory is poisoned for each block; threads that wait for others that
// never come are an error; and AddressSanitizer sees accesses outside of device memory. It says nothing of speed, of
// what blocks that run at the same time see of one another, or of what a GPU's compiler and its functions make of the
// code.

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};

struct alignas(16) uint4 {
  unsigned x = 0, y = 0, z = 0, w = 0;
};

struct alignas(8) float2 {
  float x = 0, y = 0;
};

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1) : x(of_x), y(of_y), z(of_z) {}
};

namespace lockstep::cuda_on_host {

/// Of the CUDA thread that runs. Constants to a kernel.
struct Place {
  uint3 thread;
  uint3 block;
  dim3 block_extent;
  dim3 grid_extent;
};
extern thread_local Place place;

constexpr unsigned kWarp = 32;

/// Runs `thread` of the kernel once for every thread of every block. Throws UsageError, which names the kernel, for
/// extents that CUDA refuses, and where threads wait for others that never come.
void run_grid(const char* kernel, dim3 grid, dim3 block, const std::function<void()>& thread);

/// Until all threads of the block that have not ended are here.
void wait_for_block();
/// Whether the predicate holds for any thread of the block; as wait_for_block().
bool any_of_block(bool predicate);
/// The value of the lane of this number, once all lanes of the warp that have not ended are here; garbage where it has
/// ended. `bytes`: 8 at most.
void exchange(void* value, std::size_t bytes, unsigned lane);
/// Fills a variable of the block, when the first of its threads comes to it.
void poison_shared(void* variable, std::size_t bytes);

/// Throws UsageError unless it is the address of the calling thread's current stream.
void require_current(const void* stream);
/// Appends a launch to that stream. Launch bounds are not looked at.
void append_launch(const char* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, const void* stream,
                   std::function<void()> thread);

/// kernel<<<grid, block, shared_bytes, stream>>>, to be called with the kernel's arguments.
template <class Kernel>
auto launch(const char* name, Kernel kernel, dim3 grid, dim3 block, std::size_t shared_bytes, const void* stream) {
  return
      [=](auto... arguments) { append_launch(name, grid, block, shared_bytes, stream, [=] { kernel(arguments...); }); };
}

template <class T>
T of_lane(T value, unsigned lane) {
  static_assert(sizeof(T) <= 8);
  exchange(&value, sizeof(value), lane);
  return value;
}

}  // namespace lockstep::cuda_on_host
