// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/cuda/allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "runtime/tensor/cuda/capture.h"
#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/cuda/stream.h"
#include "runtime/tensor/gpu_waits.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/storage.h"

namespace lockstep::gpu {

namespace {

constexpr std::size_t kGranularity = 512;
/// Blocks up to this size share segments of kSmallSegment; the others get segments of at least kLargeSegment, so that
/// few calls of cudaMalloc serve many tensors.
constexpr std::size_t kSmall = std::size_t{1} << 20;
constexpr std::size_t kSmallSegment = std::size_t{2} << 20;
constexpr std::size_t kLargeSegment = std::size_t{20} << 20;
constexpr std::size_t kSegmentGranularity = std::size_t{2} << 20;
/// A remainder below this stays with a large block instead of becoming one of its own.
constexpr std::size_t kLargeRemainder = std::size_t{1} << 20;

std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

/// The owner of memory. Blocks are reused and joined only within one owner.
struct Owner {
  std::uint64_t pool = 0;  ///< 0: no graph's
  cudaStream_t stream = nullptr;
  bool small = false;
  friend auto operator<=>(const Owner&, const Owner&) = default;
};

struct Block {
  std::byte* data = nullptr;
  std::size_t size = 0;
  Owner owner;
  bool used = false;
  Block* before = nullptr;  ///< neighbours in the segment
  Block* after = nullptr;
};

struct SmallestFirst {
  bool operator()(const Block* a, const Block* b) const {
    return a->size != b->size ? a->size < b->size : a->data < b->data;
  }
};

}  // namespace

struct CudaAllocator::State {
  Device device;
  mutable std::mutex mutex;
  std::map<Owner, std::set<Block*, SmallestFirst>> free;
  std::unordered_map<void*, Block*> used;
  std::map<cudaStream_t, std::uint64_t> open_pools;
  std::uint64_t pools = 0;
  std::set<std::uint64_t> closed_pools;  ///< their graphs are gone; what still lives of them goes back block by block
  std::size_t reserved = 0;

  /// The pool that serves the stream; 0 for none.
  std::uint64_t pool_of(cudaStream_t stream) const {
    if (open_pools.empty()) return 0;
    const auto open = open_pools.find(stream);
    if (open != open_pools.end()) return open->second;
    // A stream that a capture has drawn in.
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
    return status == cudaStreamCaptureStatusNone ? 0 : open_pools.begin()->second;
  }

  Block* find(const Owner& owner, std::size_t size) {
    const auto cached = free.find(owner);
    if (cached == free.end()) return nullptr;
    Block wanted;
    wanted.size = size;
    const auto fit = cached->second.lower_bound(&wanted);
    if (fit == cached->second.end()) return nullptr;
    Block* block = *fit;
    cached->second.erase(fit);
    return block;
  }

  /// Null where the device has no more.
  Block* take_segment(const Owner& owner, std::size_t size) {
    const std::size_t segment =
        owner.small ? kSmallSegment : std::max(kLargeSegment, rounded_up(size, kSegmentGranularity));
    void* data = try_cuda_malloc(segment);
    std::size_t taken = segment;
    if (data == nullptr && !owner.small && segment > rounded_up(size, kSegmentGranularity)) {
      taken = rounded_up(size, kSegmentGranularity);
      data = try_cuda_malloc(taken);
    }
    if (data == nullptr) return nullptr;
    reserved += taken;
    return new Block{.data = static_cast<std::byte*>(data), .size = taken, .owner = owner};
  }

  void* try_cuda_malloc(std::size_t bytes) const {
    const DeviceGuard guard(device);
    // Taking memory is no work of a stream: a capture that is under way may go on.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
    void* data = nullptr;
    const cudaError_t status = cudaMalloc(&data, bytes);
    check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    check(status, "cudaMalloc");
    return data;
  }

  /// Cuts what `block` has too much into a free block behind it.
  void split(Block* block, std::size_t size) {
    const std::size_t rest = block->size - size;
    if (rest < (block->owner.small ? kGranularity : kLargeRemainder)) return;
    auto* remainder = new Block{
        .data = block->data + size, .size = rest, .owner = block->owner, .before = block, .after = block->after};
    if (block->after != nullptr) block->after->before = remainder;
    block->after = remainder;
    block->size = size;
    free[block->owner].insert(remainder);
  }

  /// Joins `right`, which is free and listed nowhere, to its free neighbour on the left.
  static void absorb(Block* left, Block* right) {
    left->size += right->size;
    left->after = right->after;
    if (right->after != nullptr) right->after->before = left;
    delete right;
  }

  void put_back(Block* block) {
    auto& blocks = free[block->owner];
    if (block->after != nullptr && !block->after->used) {
      blocks.erase(block->after);
      absorb(block, block->after);
    }
    if (block->before != nullptr && !block->before->used) {
      Block* before = block->before;
      blocks.erase(before);
      absorb(before, block);
      block = before;
    }
    blocks.insert(block);
  }

  /// Whole segments that nobody uses go back to CUDA, those of `pool` alone where it is given.
  void release_segments(std::uint64_t pool) {
    const DeviceGuard guard(device);
    for (auto& [owner, blocks] : free) {
      if (owner.pool != pool) continue;
      std::erase_if(blocks, [this](Block* block) {
        if (block->before != nullptr || block->after != nullptr) return false;
        cudaFree(block->data);  // waits until the device no longer uses it
        reserved -= block->size;
        delete block;
        return true;
      });
    }
  }

  [[noreturn]] void refuse(std::size_t bytes) const {
    const DeviceGuard guard(device);
    std::size_t available = 0;
    std::size_t total = 0;
    cudaMemGetInfo(&available, &total);
    throw MemoryError(
        fmt::format("cannot allocate {} bytes on {}: of {} MiB {} MiB are free; this process holds {} MiB, in "
                    "use: {}",
                    bytes, str(device), total >> 20, available >> 20, reserved >> 20, memory_users(device)),
        "Use a smaller data.global_batch, more GPUs, or train.accumulate.");
  }
};

CudaAllocator& CudaAllocator::of(Device device) {
  static std::mutex mutex;
  static std::map<int, CudaAllocator*>& allocators = *new std::map<int, CudaAllocator*>;
  const std::lock_guard lock(mutex);
  CudaAllocator*& allocator = allocators[device.index];
  if (allocator == nullptr) allocator = new CudaAllocator(device);
  return *allocator;
}

CudaAllocator::CudaAllocator(Device device) : state_(new State{.device = device}) {}

void* CudaAllocator::allocate(std::size_t bytes, cudaStream_t stream) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (bytes > static_cast<std::size_t>(-1) / 2) state.refuse(bytes);
  const std::size_t size = rounded_up(std::max<std::size_t>(bytes, 1), kGranularity);
  const Owner owner{state.pool_of(stream), stream, size <= kSmall};
  Block* block = state.find(owner, size);
  if (block == nullptr) block = state.take_segment(owner, size);
  if (block == nullptr) {
    // Not while a graph is being captured: cudaFree would break the capture off.
    if (owner.pool == 0) state.release_segments(0);
    block = state.take_segment(owner, size);
  }
  if (block == nullptr) state.refuse(bytes);
  state.split(block, size);
  block->used = true;
  state.used.emplace(block->data, block);
  return block->data;
}

void CudaAllocator::deallocate(void* data) noexcept {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->used.find(data);
  Block* block = found->second;
  state_->used.erase(found);
  block->used = false;
  const std::uint64_t pool = block->owner.pool;
  state_->put_back(block);
  if (state_->closed_pools.contains(pool)) state_->release_segments(pool);
}

std::size_t CudaAllocator::reserved() const {
  const std::lock_guard lock(state_->mutex);
  return state_->reserved;
}

void CudaAllocator::release_cached() {
  const std::lock_guard lock(state_->mutex);
  state_->release_segments(0);
}

CudaAllocator::Pool::Pool(CudaAllocator& allocator) : allocator_(allocator) {
  const std::lock_guard lock(allocator_.state_->mutex);
  id_ = ++allocator_.state_->pools;
}

CudaAllocator::Pool::~Pool() {
  const std::lock_guard lock(allocator_.state_->mutex);
  allocator_.state_->closed_pools.insert(id_);
  allocator_.state_->release_segments(id_);
}

void CudaAllocator::Pool::open(cudaStream_t stream) {
  const std::lock_guard lock(allocator_.state_->mutex);
  allocator_.state_->open_pools[stream] = id_;
}

void CudaAllocator::Pool::close(cudaStream_t stream) {
  const std::lock_guard lock(allocator_.state_->mutex);
  allocator_.state_->open_pools.erase(stream);
}

Storage allocate(std::size_t bytes, Device device) {
  require(device);
  CudaAllocator& allocator = CudaAllocator::of(device);
  void* data = allocator.allocate(bytes, current(device));
  return Storage::counted(data, bytes, device, [&allocator, data] { allocator.deallocate(data); });
}

Storage allocate_pinned(std::size_t bytes) {
  settle_thread();
  void* data = nullptr;
  count_host_wait();
  const cudaError_t status = cudaMallocHost(&data, std::max<std::size_t>(bytes, 1));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw MemoryError(fmt::format("cannot take {} bytes of page-locked host memory", bytes),
                      "Leave the host more free memory, or use a smaller data.global_batch.");
  }
  check(status, "cudaMallocHost");
  Device device{DeviceType::kCuda, 0};
  check(cudaGetDevice(&device.index), "cudaGetDevice");
  return {data, bytes, kCpu, [data, device] {
            settle_thread(device);
            count_host_wait();
            cudaFreeHost(data);
          }};
}

bool is_pinned(const void* data) { return !is_pageable(data); }

std::size_t reserved_memory(Device device) { return CudaAllocator::of(device).reserved(); }

}  // namespace lockstep::gpu
