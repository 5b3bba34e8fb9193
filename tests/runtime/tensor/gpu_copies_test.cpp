// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <exception>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/tensor/device_value.h"
#include "runtime/tensor/gpu.h"
#include "tests/support/devices.h"

namespace lockstep {
namespace {

using lockstep::devices::kGpu;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GpuCopies : public lockstep::devices::GpuTest {
 protected:
  static Tensor counted(std::int64_t count, std::uint8_t first) {
    std::vector<std::uint8_t> values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), first);
    return Tensor::from(values, {count});
  }
  static bool same(const Tensor& a, const Tensor& b) {
    const Tensor x = a.to(kCpu), y = b.to(kCpu);
    return std::ranges::equal(x.as<std::uint8_t>(), y.as<std::uint8_t>());
  }
};

TEST_F(GpuCopies, KeepEveryByteThereAndBack) {
  for (const std::int64_t bytes : {0, 1, 3, 511, 512, 513, 1 << 20, (1 << 22) + 1}) {
    const Tensor host = counted(bytes, 3);
    const Tensor there = host.to(kGpu);
    EXPECT_EQ(there.device(), kGpu);
    EXPECT_TRUE(same(there, host)) << bytes;
    const Tensor beside = Tensor::empty({bytes}, DType::kUInt8, kGpu);
    beside.copy_from(there);
    EXPECT_TRUE(same(beside, host)) << bytes;
  }
}

TEST_F(GpuCopies, OfPartsLeaveTheRestAlone) {
  const Tensor whole = Tensor::zeros({100}, DType::kUInt8, kGpu);
  whole.rows(33, 36).copy_from(counted(3, 7));
  const Tensor host = whole.to(kCpu);
  EXPECT_THAT(host.rows(33, 36).as<std::uint8_t>(), ElementsAre(7, 8, 9));
  EXPECT_THAT(host.rows(0, 33).as<std::uint8_t>(), Each(0));
  EXPECT_THAT(host.rows(36, 100).as<std::uint8_t>(), Each(0));
  EXPECT_TRUE(same(whole.rows(34, 36), counted(2, 8)));
}

TEST_F(GpuCopies, HaveReadPageableMemoryWhenTheyReturn) {
  // The largest is more than there is memory to stage it in at once.
  for (const std::int64_t size : {1, 100'000, 256 << 10, 9'000'001}) {
    const Tensor there = Tensor::empty({size}, DType::kUInt8, kGpu);
    {
      const Tensor host = counted(size, 1);
      there.copy_from(host);
      std::ranges::fill(host.mutable_as<std::uint8_t>(), std::uint8_t{0});
    }
    EXPECT_TRUE(same(there, counted(size, 1))) << size;
  }
}

TEST_F(GpuCopies, HaveWrittenPageableMemoryWhenTheyReturn) {
  for (const std::int64_t size : {1, 100'000, 9'000'001}) {
    const Tensor there = counted(size, 1).to(kGpu), host = counted(size, 2);
    const std::uint64_t before = gpu::host_waits();
    host.copy_from(there);
    EXPECT_EQ(gpu::host_waits(), before + 1);
    EXPECT_TRUE(same(host, counted(size, 1))) << size;
  }
}

TEST_F(GpuCopies, LeavePageableMemoryAloneWhereTheDeviceHasFailed) {
  const Tensor there = counted(100, 1).to(kGpu), host = counted(100, 2);
  gpu::set_failure(kGpu, std::make_exception_ptr(PeerError("rank 1 is gone")));
  EXPECT_THROW(host.copy_from(there), PeerError);
  gpu::set_failure(kGpu, nullptr);
  EXPECT_TRUE(same(host, counted(100, 2)));
}

TEST_F(GpuCopies, TellPinnedMemoryFromOther) {
  EXPECT_TRUE(gpu::is_pinned(gpu::allocate_pinned(100).data()));
  EXPECT_FALSE(gpu::is_pinned(counted(100, 1).data()));
}

TEST_F(GpuCopies, OfPinnedMemoryDoNotWait) {
  const Tensor from = Tensor::view(gpu::allocate_pinned(100'000), 0, {100'000}, DType::kUInt8);
  const Tensor to = Tensor::view(gpu::allocate_pinned(100'000), 0, {100'000}, DType::kUInt8);
  EXPECT_EQ(from.device(), kCpu);
  from.copy_from(counted(100'000, 5));
  const Tensor there = Tensor::empty({100'000}, DType::kUInt8, kGpu);
  const std::uint64_t before = gpu::host_waits();
  there.copy_from(from);
  to.copy_from(there);
  const Event arrived = Stream::current(kGpu).record();
  EXPECT_EQ(gpu::host_waits(), before);
  arrived.synchronize();
  EXPECT_TRUE(same(to, from));
}

TEST_F(GpuCopies, OfOneElementReadEveryDtype) {
  EXPECT_EQ(Tensor::from<float>({1, 2.5f}, {2}).to(kGpu).item(1), 2.5);
  EXPECT_EQ(Tensor::from(std::vector{Half(1.5f)}, {}).to(kGpu).item(), 1.5);
  EXPECT_EQ(Tensor::from(std::vector{BFloat16(1.0f), BFloat16(-2.5f)}, {2}).to(kGpu).item(1), -2.5);
  EXPECT_EQ(Tensor::from(std::vector{0.1}, {}).to(kGpu).item(), 0.1);
  EXPECT_EQ(Tensor::from<std::int64_t>({1, 2, -7}, {3, 1}).to(kGpu).item(2), -7);
  EXPECT_EQ(Tensor::from<std::int32_t>({8}, {1}).to(kGpu).item(), 8);
  EXPECT_EQ(Tensor::from(std::vector<bool>{false, true}, {2}).to(kGpu).item(1), 1);
}

TEST_F(GpuCopies, AreTheOnlyWayToTheElements) {
  const Tensor there = Tensor::zeros({3}, DType::kFloat32, kGpu);
  try {
    there.as<float>();
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the CPU cannot read float32 [3] on cuda:0"));
  }
  EXPECT_THAT(there.to(kCpu).as<float>(), Each(0.0f));
  EXPECT_TRUE(there.to(kGpu).aliases(there));
}

TEST_F(GpuCopies, OfAStructAndItsFields) {
  struct Numbers {
    float first;
    std::int32_t second[2];
  };
  const DeviceValue<Numbers> value({1.5f, {2, 3}}, kGpu);
  EXPECT_EQ(value.device(), kGpu);
  EXPECT_EQ(value.read().second[1], 3);
  value.field(&Numbers::second).copy_from(Tensor::from<std::int32_t>({7, 8}, {2}));
  const Numbers now = *value;
  EXPECT_EQ(now.first, 1.5f);
  EXPECT_THAT(now.second, ElementsAre(7, 8));
  value.write({2.5f, {0, 0}});
  EXPECT_EQ(value.field(&Numbers::first).item(), 2.5);
}

TEST_F(GpuCopies, OfAStructWithinAStruct) {
  struct Inner {
    float a;
    std::int32_t b;
  };
  struct Outer {
    double before;
    Inner inner;
  };
  const DeviceValue<Outer> value({1.0, {2.0f, 3}}, kGpu);
  const DeviceValue<Inner> inner = value.part(&Outer::inner);
  EXPECT_EQ(inner.read().b, 3);
  inner.field(&Inner::b).copy_from(Tensor::from<std::int32_t>({5}, {1}));
  EXPECT_EQ(value.read().inner.b, 5);
  inner.copy_from(DeviceValue<Inner>({7.0f, 8}, kGpu));
  EXPECT_EQ(value.read().before, 1.0);
  EXPECT_EQ(value.read().inner.a, 7.0f);
  EXPECT_EQ(value.read().inner.b, 8);
}

}  // namespace
}  // namespace lockstep
