// SPDX-License-Identifier: Apache-2.0
#pragma once

// A group of ranks over each way in which they can reach each other's memory. Its tests run as 1 to 4 ranks; those of
// the suite Nccl, between GPUs, which the ranks share where there are fewer, as 1 to 3.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "comm/group/nccl_communicator.h"
#include "comm/group/world.h"
#include "tests/comm/rank_device.h"

namespace lockstep::comm {

enum class Path { kWindow, kPrivate, kTransport, kShortage, kNoRoom, kNodes, kNccl };

inline std::string name_of(Path path) {
  switch (path) {
    case Path::kWindow:
      return "Window";
    case Path::kPrivate:
      return "PrivateBuffers";
    case Path::kTransport:
      return "Transport";
    case Path::kShortage:
      return "TooLittleSharedMemory";
    case Path::kNoRoom:
      return "NoSharedMemory";
    case Path::kNodes:
      return "PretendedNodes";
    case Path::kNccl:
      return "cuda";
  }
  return "";
}

class Collectives : public testing::TestWithParam<Path> {
 protected:
  void SetUp() override {
    if (GetParam() == Path::kNccl) {
      if (const auto reason = lockstep::devices::why_skipped(lockstep::devices::kGpu)) GTEST_SKIP() << *reason;
      device_ = rank_device(lockstep::devices::kGpu);
      join_gpus();
      return;
    }
    // Read when the world is made, so that no two tests of this process see each other's.
    if (GetParam() == Path::kShortage) setenv("LOCKSTEP_SHARED_MEMORY_BYTES", "1500000", 1);
    if (GetParam() == Path::kNoRoom) setenv("LOCKSTEP_SHARED_MEMORY_BYTES", "0", 1);
    if (GetParam() == Path::kNodes) setenv("LOCKSTEP_RANKS_PER_NODE", "2", 1);
    world_ = std::make_shared<World>(World::from_environment(
        {.timeout = std::chrono::seconds(60), .shared_memory = GetParam() != Path::kTransport}));
    group_ = world_->communicator();
    unsetenv("LOCKSTEP_RANKS_PER_NODE");
  }
  void TearDown() override {
    arena_ = {};
    group_.reset();
    world_.reset();
    unsetenv("LOCKSTEP_SHARED_MEMORY_BYTES");
  }

  static void TearDownTestSuite() {
    gpu_group.reset();
    gpu_world.reset();
  }
  /// One group for all tests: NCCL takes a while to start.
  void join_gpus() {
    const CommunicatorOptions options{.timeout = std::chrono::seconds(60), .device = device_};
    if (gpu_world == nullptr) {
      gpu_world = std::make_shared<World>(World::from_environment(options));
      // A lone rank needs no NCCL, but has to get along with it.
      gpu_group = gpu_world->size() == 1 ? make_nccl_communicator(make_self_communicator(), device_, options)
                                         : gpu_world->communicator();
    }
    world_ = gpu_world;
    group_ = gpu_group;
  }

  Communicator& group() { return *group_; }
  /// Where work on the device is enqueued.
  Stream stream() const { return Stream::current(device_); }
  bool is_nccl() const { return GetParam() == Path::kNccl; }
  int rank() { return world_->rank(); }
  int size() { return world_->size(); }

  /// In a shared window where the path has one. Every call gives the same memory.
  Tensor buffer(std::int64_t count, DType dtype) {
    if (!arena_) {
      arena_ = GetParam() == Path::kPrivate ? Storage::allocate(kArenaBytes, kCpu) : group().allocate(kArenaBytes);
      EXPECT_EQ(arena_.device(), device_);
    }
    return Tensor::view(arena_, 0, {count}, dtype);
  }

  Tensor zeros(const Shape& shape, DType dtype) const { return Tensor::zeros(shape, dtype, device_); }

  static constexpr std::size_t kArenaBytes = 1 << 20;
  Device device_ = kCpu;
  std::shared_ptr<World> world_;
  std::shared_ptr<Communicator> group_;
  Storage arena_;
  inline static std::shared_ptr<World> gpu_world;
  inline static std::shared_ptr<Communicator> gpu_group;
};

/// Element `at` of a tensor on the CPU.
inline void set(const Tensor& tensor, std::int64_t at, double value) {
  const auto i = static_cast<std::size_t>(at);
  switch (tensor.dtype()) {
    case DType::kFloat32:
      tensor.mutable_as<float>()[i] = static_cast<float>(value);
      break;
    case DType::kFloat16:
      tensor.mutable_as<Half>()[i] = Half(static_cast<float>(value));
      break;
    case DType::kBFloat16:
      tensor.mutable_as<BFloat16>()[i] = BFloat16(static_cast<float>(value));
      break;
    case DType::kFloat64:
      tensor.mutable_as<double>()[i] = value;
      break;
    case DType::kInt64:
      tensor.mutable_as<std::int64_t>()[i] = static_cast<std::int64_t>(value);
      break;
    case DType::kInt32:
      tensor.mutable_as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
      break;
    case DType::kUInt8:
      tensor.mutable_as<std::uint8_t>()[i] = static_cast<std::uint8_t>(value);
      break;
    case DType::kBool:
      tensor.mutable_as<bool>()[i] = value != 0;
      break;
  }
}

/// Element i becomes value(i), on any device.
template <class F>
void fill(const Tensor& tensor, F value) {
  const bool here = tensor.device() == kCpu;
  const Tensor host = here ? tensor : Tensor::zeros(tensor.shape(), tensor.dtype());
  for (std::int64_t i = 0; i < host.numel(); ++i) set(host, i, value(i));
  if (!here) tensor.copy_from(host);
}

/// Counts the elements that are further from value(i) than the tolerance.
template <class F>
void expect_equal(const Tensor& tensor, F value, double tolerance = 0) {
  const Tensor host = tensor.to(kCpu).reshaped({tensor.numel()});
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < host.numel(); ++i) wrong += std::abs(host.item(i) - value(i)) > tolerance ? 1 : 0;
  EXPECT_EQ(wrong, 0) << "of " << describe(tensor);
}

inline void expect_all(const Tensor& tensor, double value) {
  expect_equal(tensor, [value](std::int64_t) { return value; });
}

}  // namespace lockstep::comm
