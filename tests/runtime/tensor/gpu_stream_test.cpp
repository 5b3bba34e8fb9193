// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tensor/gpu.h"
#include "runtime/tensor/tensor.h"
#include "tests/support/devices.h"

namespace lockstep {
namespace {

using lockstep::devices::kGpu;

class GpuStream : public lockstep::devices::GpuTest {
 protected:
  static bool is(const Stream& a, const Stream& b) { return a.impl() == b.impl(); }
  static Tensor zeros(std::int64_t count) { return Tensor::zeros({count}, DType::kFloat32, kGpu); }
  static Tensor filled(std::int64_t count, float value) {
    return Tensor::from(std::vector<float>(static_cast<std::size_t>(count), value), {count});
  }
};

TEST_F(GpuStream, EachThreadHasItsOwn) {
  const Stream here = Stream::current(kGpu);
  EXPECT_EQ(here.device(), kGpu);
  EXPECT_TRUE(is(Stream::current(kGpu), here));
  std::thread([&] { EXPECT_FALSE(is(Stream::current(kGpu), here)); }).join();
}

TEST_F(GpuStream, AScopedOneIsTheCurrentOneUntilItEnds) {
  const Stream usual = Stream::current(kGpu), outer = Stream::create(kGpu, "outer"),
               inner = Stream::create(kGpu, "inner");
  {
    const gpu::ScopedStream scope(outer);
    EXPECT_TRUE(is(Stream::current(kGpu), outer));
    {
      const gpu::ScopedStream nested(inner);
      EXPECT_TRUE(is(Stream::current(kGpu), inner));
    }
    EXPECT_TRUE(is(Stream::current(kGpu), outer));
  }
  EXPECT_TRUE(is(Stream::current(kGpu), usual));
}

TEST_F(GpuStream, EnqueuedWorkRunsAtOnceAndAppends) {
  const Stream usual = Stream::current(kGpu), side = Stream::create(kGpu, "side");
  bool ran = false;
  side.enqueue([&] {
    ran = true;
    EXPECT_TRUE(is(Stream::current(kGpu), side));
  });
  EXPECT_TRUE(ran);
  EXPECT_THROW(side.enqueue([] { throw UsageError("boom"); }), UsageError);
  EXPECT_TRUE(is(Stream::current(kGpu), usual)) << "after a failure too";
}

TEST_F(GpuStream, OneWaitsForAnEventOfAnother) {
  constexpr std::int64_t kCount = 1 << 20;
  const Stream here = Stream::current(kGpu), side = Stream::create(kGpu, "side");
  const Tensor a = zeros(kCount), b = zeros(kCount);
  // To and fro: every copy needs what the one before it wrote, on the other stream.
  for (int round = 1; round <= 20; ++round) {
    a.copy_from(filled(kCount, static_cast<float>(round)));
    side.wait(here.record());
    side.enqueue([&] { b.copy_from(a); });
    here.wait(side.record());
  }
  EXPECT_EQ(b.item(0), 20);
  EXPECT_EQ(b.item(kCount - 1), 20);
}

TEST_F(GpuStream, WaitsForTheCpusEventsToo) {
  const Stream worker = Stream::worker("cpu");
  bool ran = false;
  worker.enqueue([&] { ran = true; });
  Stream::current(kGpu).wait(worker.record());
  EXPECT_TRUE(ran);
  Stream::current(kGpu).wait(Event());
}

TEST_F(GpuStream, AnEventThatHasHappenedIsNotWaitedFor) {
  const Stream here = Stream::current(kGpu);
  const Tensor x = zeros(1000);
  const Event written = here.record();
  written.synchronize();
  EXPECT_TRUE(written.done());
  const std::uint64_t before = gpu::host_waits();
  written.synchronize();
  EXPECT_EQ(gpu::host_waits(), before);
  here.synchronize();
  EXPECT_EQ(gpu::host_waits(), before + 1);
}

TEST_F(GpuStream, AFailureOfTheDeviceReachesWhoeverWaits) {
  const Stream here = Stream::current(kGpu);
  const Event event = here.record();
  here.synchronize();
  gpu::set_failure(kGpu, std::make_exception_ptr(PeerError("rank 1 is gone")));
  EXPECT_THROW(here.synchronize(), PeerError);
  EXPECT_THROW(event.synchronize(), PeerError);
  gpu::set_failure(kGpu, nullptr);
  EXPECT_NO_THROW(here.synchronize());
  EXPECT_NO_THROW(event.synchronize());
}

TEST_F(GpuStream, OfTheCpuIsRefusedForAGpusWork) {
  const Tensor x = zeros(4);
  EXPECT_THROW(gpu::zero(x.data(), x.bytes(), Stream::calling_thread()), UsageError);
}

TEST_F(GpuStream, TheLastCopyFinishesItsWork) {
  const Tensor x = zeros(1 << 20);
  Stream::current(kGpu).synchronize();
  {
    const Stream side = Stream::create(kGpu, "dropped");
    side.enqueue([&] { x.copy_from(filled(1 << 20, 3)); });
  }
  EXPECT_EQ(x.item((1 << 20) - 1), 3);
}

TEST_F(GpuStream, DevicesThatAreNotThereAreNamed) {
  for (const Device missing : {Device{DeviceType::kCuda, 99}, Device{DeviceType::kCuda, -1}}) {
    EXPECT_THROW(gpu::describe(missing), EnvironmentError);
    EXPECT_THROW(Tensor::empty({1}, DType::kFloat32, missing), EnvironmentError);
    EXPECT_THROW(Stream::create(missing, "missing"), EnvironmentError);
  }
  EXPECT_FALSE(gpu::describe(kGpu).name.empty());
}

}  // namespace
}  // namespace lockstep
