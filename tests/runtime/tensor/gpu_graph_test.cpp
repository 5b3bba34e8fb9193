// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <numeric>

#include "runtime/base/error.h"
#include "runtime/tensor/gpu.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::gpu {
namespace {

using testing::Each;
using testing::ElementsAreArray;

constexpr Device kGpu{DeviceType::kCuda, 0};

class GpuGraph : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << why_none();
  }
  static std::vector<float> values_of(const Tensor& tensor) {
    const Tensor host = tensor.to(kCpu);
    return {host.as<float>().begin(), host.as<float>().end()};
  }
  static std::vector<float> counted(float first) {
    std::vector<float> values(1000);
    std::iota(values.begin(), values.end(), first);
    return values;
  }
};

TEST_F(GpuGraph, DoesItsWorkAnewEachTimeThatItIsLaunched) {
  const Tensor from = Tensor::from(counted(0), {1000}).to(kGpu);
  const Tensor to = Tensor::zeros({1000}, DType::kFloat32, kGpu);
  Graph graph(kGpu);
  graph.capture([&] { to.copy_from(from); });
  EXPECT_THAT(values_of(to), Each(0.0f)) << "capturing runs nothing";
  for (const float first : {1.0f, 2.0f}) {
    from.copy_from(Tensor::from(counted(first), {1000}));
    graph.launch();
    EXPECT_THAT(values_of(to), ElementsAreArray(counted(first)));
  }
}

TEST_F(GpuGraph, KeepsWhatItAllocatedFromEverybodyElse) {
  const Tensor from = Tensor::from(counted(0), {1000}).to(kGpu);
  const Tensor to = Tensor::zeros({1000}, DType::kFloat32, kGpu);
  Graph graph(kGpu);
  graph.capture([&] {
    const Tensor between = Tensor::empty({1000}, DType::kFloat32, kGpu);
    between.copy_from(from);
    to.copy_from(between);
  });
  std::vector<Tensor> others;
  for (int i = 0; i < 100; ++i) others.push_back(Tensor::zeros({1000}, DType::kFloat32, kGpu));
  graph.launch();
  EXPECT_THAT(values_of(to), ElementsAreArray(counted(0)));
  for (const Tensor& other : others) ASSERT_THAT(values_of(other), Each(0.0f));
}

TEST_F(GpuGraph, RecordsStreamsThatEventsDrawIn) {
  const Tensor from = Tensor::from(counted(5), {1000}).to(kGpu);
  const Tensor to = Tensor::zeros({1000}, DType::kFloat32, kGpu);
  const Stream side = Stream::create(kGpu, "side");
  Graph graph(kGpu);
  graph.capture([&] {
    const Stream here = Stream::current(kGpu);
    side.wait(here.record());
    side.enqueue([&] {
      const Tensor between = Tensor::empty({1000}, DType::kFloat32, kGpu);
      between.copy_from(from);
      to.copy_from(between);
    });
    here.wait(side.record());
  });
  graph.launch();
  EXPECT_THAT(values_of(to), ElementsAreArray(counted(5)));
}

TEST_F(GpuGraph, RefusesHostMemoryThatMayBeGone) {
  const Tensor to = Tensor::zeros({1000}, DType::kFloat32, kGpu);
  Graph graph(kGpu);
  EXPECT_THROW(graph.capture([&] { to.copy_from(Tensor::from(counted(0), {1000})); }), UsageError);
  // The stream is as before.
  to.copy_from(Tensor::from(counted(3), {1000}));
  EXPECT_THAT(values_of(to), ElementsAreArray(counted(3)));
}

TEST_F(GpuGraph, IsCapturedOnce) {
  const Tensor to = Tensor::zeros({1000}, DType::kFloat32, kGpu);
  const Tensor from = Tensor::zeros({1000}, DType::kFloat32, kGpu);
  Graph graph(kGpu);
  graph.capture([&] { to.copy_from(from); });
  EXPECT_THROW(graph.capture([&] { to.copy_from(from); }), UsageError);
}

}  // namespace
}  // namespace lockstep::gpu
