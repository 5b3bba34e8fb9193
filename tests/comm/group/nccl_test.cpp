// SPDX-License-Identifier: Apache-2.0
// What is refused before any GPU is asked.
#include <gmock/gmock.h>

#include <cstdlib>

#include "comm/group/arguments.h"
#include "comm/group/nccl_communicator.h"
#include "comm/group/versions.h"
#include "comm/group/world.h"
#include "runtime/base/error.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::comm {
namespace {

constexpr Device kGpu{DeviceType::kCuda, 0};
constexpr Device kOtherGpu{DeviceType::kCuda, 1};

/// A tensor that claims to lie on a device, with memory that nobody touches.
Tensor pretended(std::int64_t count, DType dtype, Device device) {
  static std::byte memory[64];
  return Tensor::view(Storage(memory, sizeof memory, device, nullptr), 0, {count}, dtype);
}

TEST(DeviceArguments, ABufferLiesOnTheCpuOrOnTheGroupsDevice) {
  const Tensor host = Tensor::zeros({4}, DType::kFloat32);
  EXPECT_NO_THROW(check_device("all_reduce", host, kGpu));
  EXPECT_NO_THROW(check_device("all_reduce", pretended(4, DType::kFloat32, kGpu), kGpu));
  EXPECT_THROW(check_device("all_reduce", pretended(4, DType::kFloat32, kOtherGpu), kGpu), ShapeError);
  try {
    check_device("all_reduce", pretended(4, DType::kFloat32, kGpu), kCpu);
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "all_reduce: expected a tensor on cpu, found float32 [4] on cuda:0");
  }
}

TEST(DeviceArguments, TwoBuffersLieTogether) {
  const Tensor host = Tensor::zeros({4}, DType::kFloat32);
  const Tensor device = pretended(4, DType::kFloat32, kGpu);
  EXPECT_NO_THROW(check_device("all_gather", device, device, kGpu));
  EXPECT_THROW(check_device("all_gather", host, device, kGpu), ShapeError);
  EXPECT_THROW(check_device("all_gather", device, host, kGpu), ShapeError);
}

TEST(DeviceArguments, AGroupOfCpusRefusesAGpusTensor) {
  const Tensor device = pretended(4, DType::kFloat32, kGpu);
  const Stream here = Stream::calling_thread();
  EXPECT_THROW(make_self_communicator()->all_reduce(device, ReduceOp::kSum, 1.0f, here), ShapeError);
  EXPECT_THROW(make_self_communicator()->broadcast(device, 0, here), ShapeError);
}

TEST(DeviceArguments, AGroupOfAGpuStillServesTheCpu) {
  const auto group = make_self_communicator(kGpu);
  const Tensor host = Tensor::from<float>({3}, {1});
  group->all_reduce(host, ReduceOp::kSum, 2.0f, Stream::calling_thread());
  EXPECT_EQ(host.item(), 6.0);
  EXPECT_THAT(group->all_gather_text("job"), testing::ElementsAre("job"));
  EXPECT_THROW(group->all_reduce(pretended(1, DType::kBool, kGpu), ReduceOp::kSum, 1.0f, Stream::calling_thread()),
               ShapeError);
}

TEST(Channels, LaunchInTheOrderOfTheCallsUnlessTheEnvironmentSaysOtherwise) {
  if (nccl_version().empty()) GTEST_SKIP() << "this build has no NCCL";
  const auto order_of_a_group = [] {
    try {
      make_nccl_communicator(make_self_communicator(), kGpu, {});
    } catch (const EnvironmentError&) {  // there is no GPU
    }
    return std::string(std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT"));
  };
  unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  EXPECT_EQ(order_of_a_group(), "1");
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "0", 1);
  EXPECT_EQ(order_of_a_group(), "0");
  unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT");
}

TEST(DeviceArguments, WithoutAGpuThereIsNoGroupOfGpus) {
  if (gpu::device_count() > 0) GTEST_SKIP() << "this machine has GPUs";
  EXPECT_THROW(make_nccl_communicator(make_self_communicator(), kGpu, {}), EnvironmentError);
  EXPECT_THROW(World::from_environment({.device = kGpu}), EnvironmentError);
}

}  // namespace
}  // namespace lockstep::comm
